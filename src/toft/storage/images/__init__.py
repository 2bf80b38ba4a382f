"""Images, rendered on demand: smaller, cropped, in another format.

Nouns: transformation (what is asked), painter (the process that opens images nobody trusts), studio (who runs
it). Start at `render.py`. Never: decoding in the gateway's own process.
"""
