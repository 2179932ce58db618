"""Describes pages for people: the terminal and the editor draw the same sections.

`model` defines a page, each other module makes one kind of page from the records of the service,
and `lines` renders a page as text.  All sentences are here, and a link only names its target.
"""
