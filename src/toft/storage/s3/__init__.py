"""The S3 door: the same buckets and objects for clients that speak Amazon's protocol.

Nouns: signed request (who asks, proved by SigV4), operation. Start at `door.py`, then `sigv4.py`.
Never: another way to judge or to keep an object than that of the other endpoints.
"""
