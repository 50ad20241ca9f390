"""Tasks: a folder each, and what several of them share. Nothing is imported here, so that specs stay without torch."""
