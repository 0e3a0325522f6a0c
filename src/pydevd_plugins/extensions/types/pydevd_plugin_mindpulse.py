"""How MindSpore's tensors look in the variables pane of a debugger that is built on pydevd.

The debugger looks for modules of this name by itself; nothing else imports it. A tensor is copied
from the device when it is unfolded, or is small; one that cannot be read is shown as before.
"""

import sys

from _pydevd_bundle.pydevd_extension_api import StrPresentationProvider, TypeResolveProvider

# Stepping asks for every variable in sight, each time.
SMALL = 1 << 20
SHOWN = ("shape", "dtype", "device", "min", "mean", "max", "std", "nonfinite", "zeros", "array")


def _is_tensor(kind):
    """Whether a class is MindSpore's Tensor, without importing MindSpore."""
    mindspore = sys.modules.get("mindspore")
    tensor = getattr(mindspore, "Tensor", None)
    return isinstance(tensor, type) and issubclass(kind, tensor)


class MindSporeTensorText(StrPresentationProvider):
    """The line beside the name."""

    def can_provide(self, type_object, type_name):
        """Tensors and Parameters."""
        return _is_tensor(type_object)

    def get_str(self, val):
        """Type, shape and the main numbers; of a large tensor type and shape."""
        try:
            name = type(val).__name__
            if val.size > SMALL:
                return f"{name} {val.dtype} {tuple(val.shape)} (unfold it, or mindpulse.peek)"
            from mindpulse.debugging.peek import peek

            return f"{name} {peek(val).short()}"
        except Exception as error:  # the pane must never fail
            return f"{type(val).__name__} ({type(error).__name__}: {error})"


class MindSporeTensorChildren(TypeResolveProvider):
    """What is below the line once it is unfolded."""

    def can_provide(self, type_object, type_name):
        """Tensors and Parameters."""
        return _is_tensor(type_object)

    def resolve(self, var, attribute):
        """One of them."""
        return self.get_dictionary(var).get(attribute)

    def get_dictionary(self, var):
        """Numbers and the copy."""
        try:
            from mindpulse.debugging.peek import peek

            found = peek(var)
            return {name: getattr(found, name) for name in SHOWN}
        except Exception as error:
            return {"error": f"{type(error).__name__}: {error}"}
