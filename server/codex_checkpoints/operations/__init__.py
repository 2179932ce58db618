"""What the doors can be asked for: a function an operation, params in, the answer out.

Each module is a subject: its params, the records that only an answer has, and its operations.
Where an answer is a record of the service or the core, that record goes out as it is.  `protocol`
is the table of what goes over the wire; `cli` calls the same functions and prints what comes back.

An operation takes the `Services` of its caller.  It looks no session up in an index of its own
making and sends nothing: the caller brings the index up to date before, and hears what changed.
"""
