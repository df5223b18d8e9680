# SPDX-License-Identifier: Apache-2.0
"""What the HTTP front and the scheduler send each other, pickled, and the options of a server."""
import dataclasses


@dataclasses.dataclass
class TokenizedGenerateReqInput:
    rid: str
    input_text: str
    input_ids: list
    sampling_params: dict
    forward_ms: float
    bootstrap_host: str
    bootstrap_port: int
    bootstrap_room: int


@dataclasses.dataclass
class AbortReq:
    rid: str


@dataclasses.dataclass
class Reply:
    rid: str
    ok: bool
    message: str
    prompt_tokens: int = 0


@dataclasses.dataclass
class ServerArgs:
    """Options of prefill.py; each is a --flag of the same name."""

    port: int = 0
    loop: str = "overlap"  # or normal: which of the two event loops runs
    title: str = "sglang::scheduler"
    workers: int = 4
    chunked_prefill_size: int = 64  # tokens of one forward pass
    take_turns: bool = False  # what is partly prefilled gives way to others that wait
    forward_ms: float = 5.0  # of one forward pass, where the request does not say
    bootstrap_timeout: float = 300.0
    idle_sleep: float = 0.001  # of an idle main loop; 0 spins, as the real one does
    poll_sleep: float = 60e-6  # between status polls of a worker: some 12,000 a second
    lazy_nixl: bool = False  # map libnixl.so when the first decode registers
    hybrid: bool = False  # the model has state to send besides KV
    num_pages: int = 1024
    item_len: int = 16384
    transport: str = "nixl"  # or mooncake
    old_engine: bool = False  # mooncake: the layouts of releases before 0.3.9, one call a block
    layer_threads: bool = False  # mooncake: the layers of a chunk on threads of their own
    aux_by_zmq: bool = False  # mooncake: the auxiliary data in a message
    transfer_timeout: int = 3600  # mooncake: seconds after which its calls give up; 30 in reality
    build: str = ""  # folder of the libraries and their bindings
