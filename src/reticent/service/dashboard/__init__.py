"""Pages for the owner of a service: what was spent of whose privacy, by whom, and what is left.

They are read-only, and work without JavaScript.
"""
