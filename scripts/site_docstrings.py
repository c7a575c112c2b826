"""Keep `<unk>`, `</s>` and `FILE.<lang>` of docstrings visible on the site, where Markdown takes them for HTML tags."""

import re
from typing import Any

import griffe

CODE = re.compile(r"(`+[^`]*`+)")


class EscapeTags(griffe.Extension):
    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring:
            parts = CODE.split(obj.docstring.value)
            parts[::2] = [re.sub(r"<(?=[/\w])", "&lt;", part) for part in parts[::2]]
            obj.docstring.value = "".join(parts)
