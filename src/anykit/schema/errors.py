"""What is wrong with a definition. What is wrong with a *value* is a list of faults, never one of these.

ValueError
└── SchemaError         it is no JSON Schema that we can use
TypeError
└── SignatureError      a function cannot be described; the text names the function and the parameter
"""

from __future__ import annotations


class SchemaError(ValueError):
    """A schema cannot be used: it is invalid, refers elsewhere, names an unknown dialect, or is beyond the bounds."""


class SignatureError(TypeError):
    """A function cannot be described. The text names the function and, where there is one, the parameter."""
