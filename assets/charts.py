"""Asset `charts`: every figure as SVG and PNG, from one SQL view each."""
