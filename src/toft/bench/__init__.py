"""`toft bench`: what Toft costs, measured beside a floor on the same machine.

Nouns: `Figure`, `Report`, floor. Start at `measure.py`; one file per subject. Never: an assertion about time;
a bench reports, and says whether a goal was met.
"""
