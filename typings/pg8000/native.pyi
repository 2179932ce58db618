from socket import socket
from ssl import SSLContext
from typing import Any, Self

class Connection:
    row_count: int

    def __init__(
        self,
        user: str,
        host: str = ...,
        database: str | None = ...,
        port: int = ...,
        password: str | None = ...,
        ssl_context: SSLContext | None = ...,
        application_name: str | None = ...,
        startup_params: dict[str, str] | None = ...,
        sock: socket | None = ...,
    ) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *error: object) -> None: ...
    def run(self, sql: str, **params: object) -> list[list[Any]]: ...
    def execute_simple(self, sql: str) -> object: ...
    def close(self) -> None: ...

def identifier(sql: str) -> str: ...
