"""What ctx knows about each agent: one module per agent, plain functions."""
