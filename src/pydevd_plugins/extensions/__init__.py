"""A share of the debugger's package of plugins, beside its own."""

import pkgutil

__path__ = pkgutil.extend_path(__path__, __name__)
