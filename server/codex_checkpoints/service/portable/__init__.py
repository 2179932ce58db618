"""What a session knows, as one file that opens in another home.

What came in is kept by `import_records`; the file itself is written by `durable`.
"""
