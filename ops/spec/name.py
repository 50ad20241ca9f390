"""Names and seeds of experiments. (Not in `part.py`, whose change would change the key of every stage.)"""

from typing import Annotated

from pydantic import Field

NAME = r"^[a-z][a-z0-9_]{0,63}$"
Name = Annotated[str, Field(pattern=NAME)]
Seeds = Annotated[tuple[Annotated[int, Field(ge=0, lt=2**31)], ...], Field(min_length=1)]
