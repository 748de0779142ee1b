"""The control loop that divides every quota each second by demand. Pure, except process.py, its shell."""
