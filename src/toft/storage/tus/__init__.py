"""Resumable uploads by the tus protocol, version 1.0.0: an object that arrives in several requests.

Nouns: draft (what has arrived of an object, and what is noted about it), turn (the right to work on one).
Start at `door.py`. Never: another way to make an object visible than `uploads.publish`.
"""
