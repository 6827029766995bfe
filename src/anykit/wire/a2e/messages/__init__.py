"""The classes of the wire, one module a capability. Names repeat between capabilities, so the modules stay apart.

Importing this package imports none of them; `registry` knows where each message type lives.
"""
