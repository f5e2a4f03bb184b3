"""ctx: coreutils for LLM context."""

__version__ = "0.1.0"
