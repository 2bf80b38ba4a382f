"""A mailbox for each backend: what would have been sent is kept and readable, in Mailpit's manner.

Nouns: mail, box. Start at `box.py`, then `routes.py`. Never: sending anything anywhere, another backend's
mail.
"""
