"""What the service answers, as wire records, a module a subject: the one place where the two meet.

How a record looks as JSON is in `wire`, how it reads at a terminal in `presentation`.
"""
