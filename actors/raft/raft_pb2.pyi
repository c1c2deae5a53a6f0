from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Frame(_message.Message):
    __slots__ = ("greeting", "challenge", "proof", "opening", "piece")
    GREETING_FIELD_NUMBER: _ClassVar[int]
    CHALLENGE_FIELD_NUMBER: _ClassVar[int]
    PROOF_FIELD_NUMBER: _ClassVar[int]
    OPENING_FIELD_NUMBER: _ClassVar[int]
    PIECE_FIELD_NUMBER: _ClassVar[int]
    greeting: Greeting
    challenge: Challenge
    proof: Proof
    opening: Opening
    piece: Piece
    def __init__(self, greeting: _Optional[_Union[Greeting, _Mapping]] = ..., challenge: _Optional[_Union[Challenge, _Mapping]] = ..., proof: _Optional[_Union[Proof, _Mapping]] = ..., opening: _Optional[_Union[Opening, _Mapping]] = ..., piece: _Optional[_Union[Piece, _Mapping]] = ...) -> None: ...

class Greeting(_message.Message):
    __slots__ = ("protocol_version", "source", "target", "nonce", "address")
    PROTOCOL_VERSION_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    NONCE_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    protocol_version: int
    source: int
    target: int
    nonce: bytes
    address: str
    def __init__(self, protocol_version: _Optional[int] = ..., source: _Optional[int] = ..., target: _Optional[int] = ..., nonce: _Optional[bytes] = ..., address: _Optional[str] = ...) -> None: ...

class Challenge(_message.Message):
    __slots__ = ("nonce", "proof")
    NONCE_FIELD_NUMBER: _ClassVar[int]
    PROOF_FIELD_NUMBER: _ClassVar[int]
    nonce: bytes
    proof: bytes
    def __init__(self, nonce: _Optional[bytes] = ..., proof: _Optional[bytes] = ...) -> None: ...

class Proof(_message.Message):
    __slots__ = ("proof",)
    PROOF_FIELD_NUMBER: _ClassVar[int]
    proof: bytes
    def __init__(self, proof: _Optional[bytes] = ...) -> None: ...

class Opening(_message.Message):
    __slots__ = ("session", "number")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    session: bytes
    number: int
    def __init__(self, session: _Optional[bytes] = ..., number: _Optional[int] = ...) -> None: ...

class Piece(_message.Message):
    __slots__ = ("data", "last", "mac")
    DATA_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    MAC_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    last: bool
    mac: bytes
    def __init__(self, data: _Optional[bytes] = ..., last: _Optional[bool] = ..., mac: _Optional[bytes] = ...) -> None: ...

class Request(_message.Message):
    __slots__ = ("operation", "idempotency_key", "body")
    OPERATION_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    BODY_FIELD_NUMBER: _ClassVar[int]
    operation: str
    idempotency_key: str
    body: bytes
    def __init__(self, operation: _Optional[str] = ..., idempotency_key: _Optional[str] = ..., body: _Optional[bytes] = ...) -> None: ...

class Answer(_message.Message):
    __slots__ = ("body", "failure", "term", "committed_index")
    BODY_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    TERM_FIELD_NUMBER: _ClassVar[int]
    COMMITTED_INDEX_FIELD_NUMBER: _ClassVar[int]
    body: bytes
    failure: Failure
    term: int
    committed_index: int
    def __init__(self, body: _Optional[bytes] = ..., failure: _Optional[_Union[Failure, _Mapping]] = ..., term: _Optional[int] = ..., committed_index: _Optional[int] = ...) -> None: ...

class Failure(_message.Message):
    __slots__ = ("error",)
    ERROR_FIELD_NUMBER: _ClassVar[int]
    error: bytes
    def __init__(self, error: _Optional[bytes] = ...) -> None: ...
