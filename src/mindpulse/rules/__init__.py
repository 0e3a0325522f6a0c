"""The rule language, the rules that ship, and how a rule file is read."""

from __future__ import annotations
