"""Toft: a Supabase-compatible backend, and a computer, of its own for every command that needs one."""

__version__ = "0.1.0"
