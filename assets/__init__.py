"""What: one module a stage; an asset reads its inputs, calls ops, publishes, reports."""
