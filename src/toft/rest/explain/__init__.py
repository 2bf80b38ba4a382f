"""Why a request was refused: what the error of Postgres or of the plan leaves out, from the catalogue.

Only ever asked after a failure. `explainer.py` is the one file that asks the database; `blame.py` reads the
error, `facts.py` has the questions, `judge.py` tries policies on the rows, `words.py` says it. An explanation
goes into `hint`, whole behind the link in `Toft-Explain`; status, code, message and details stay upstream's.
"""
