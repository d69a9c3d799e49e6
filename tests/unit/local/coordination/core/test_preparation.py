"""Write requests that are refused, and what each one comes to."""

import pytest

from odradek.local.coordination.core.acl import OPEN, READ_ONLY, Acl, Identity, digest_identity
from odradek.local.coordination.core.preparation import Preparation, deletable_containers
from odradek.local.coordination.core.protocol import Code, CreateMode, KeeperError, OpCode
from odradek.local.coordination.core.requests import (
    CheckRequest,
    CreateRequest,
    DeleteRequest,
    MultiRequest,
    ReconfigRequest,
    SetAclRequest,
    SetDataRequest,
    WriteRequest,
)
from odradek.local.coordination.core.transactions import CreateTxn, DeleteTxn, ErrorTxn, LoggedTxn, MultiTxn, decode
from odradek.local.coordination.core.tree import DataTree

ANN = digest_identity(b"ann:secret")


def create(path: str, mode: CreateMode = CreateMode.PERSISTENT, kind: OpCode = OpCode.CREATE) -> CreateRequest:
    return CreateRequest(kind, path, b"x", OPEN, mode)


class Story:
    """A tree, and requests of one session, each with the next zxid."""

    def __init__(self) -> None:
        self.tree = DataTree()
        self.zxid = 0

    def do(self, request: WriteRequest, *identities: Identity) -> LoggedTxn:
        self.zxid += 1
        logged = LoggedTxn(7, 0, self.zxid, 1000, Preparation(self.tree, identities).prepare(request))
        assert decode(logged.encoded()) == logged
        self.tree.apply(logged, [])
        return logged

    def refused(self, request: WriteRequest, *identities: Identity) -> Code:
        with pytest.raises(KeeperError) as error:
            self.do(request, *identities)
        return error.value.code


def test_names_of_a_sequence_follow_the_number_of_children_ever_created() -> None:
    story = Story()
    story.do(create("/a"))
    for expected in ("/a/n-0000000000", "/a/n-0000000001"):
        logged = story.do(create("/a/n-", CreateMode.PERSISTENT_SEQUENTIAL))
        assert isinstance(logged.txn, CreateTxn)
        assert logged.txn.path == expected
        story.do(DeleteRequest(expected, -1))
    assert (story.tree.nodes["/a"].cversion, story.tree.nodes["/a"].pzxid) == (2, 5)


def test_what_is_refused() -> None:
    story = Story()
    story.do(create("/a"))
    story.do(create("/a/e", CreateMode.EPHEMERAL))
    assert story.refused(create("/a")) is Code.NODE_EXISTS
    assert story.refused(create("/no/parent")) is Code.NO_NODE
    assert story.refused(create("/a/e/child")) is Code.NO_CHILDREN_FOR_EPHEMERALS
    assert story.refused(DeleteRequest("/a", -1)) is Code.NOT_EMPTY
    assert story.refused(DeleteRequest("/a/e", 1)) is Code.BAD_VERSION
    assert story.refused(DeleteRequest("/zookeeper", -1)) is Code.BAD_ARGUMENTS
    assert story.refused(SetDataRequest("/a", b"", 3)) is Code.BAD_VERSION
    assert story.refused(create("/ttl", CreateMode.PERSISTENT_WITH_TTL)) is Code.UNIMPLEMENTED
    assert story.refused(ReconfigRequest()) is Code.RECONFIG_DISABLED
    for path in ("", "a", "/a/", "//a", "/a/../b", "/a/.", "/a\0", "/a\x7f", "/\U0001f600"):
        assert story.refused(create(path)) in (Code.BAD_ARGUMENTS, Code.NO_NODE), path


def test_a_multi_happens_whole_or_not_at_all() -> None:
    story = Story()
    parts = (
        create("/a"),
        create("/a/b"),
        SetDataRequest("/a", b"y", 0),
        CheckRequest("/a", 1),
        DeleteRequest("/a/b", 0),
    )
    story.do(MultiRequest(parts))
    assert (story.tree.nodes["/a"].data, "/a/b" in story.tree.nodes) == (b"y", False)
    failing = story.do(MultiRequest((create("/c"), CheckRequest("/a", 7), create("/d"))))
    assert isinstance(failing.txn, MultiTxn)
    assert failing.txn.txns[1:] == (ErrorTxn(Code.BAD_VERSION), ErrorTxn(Code.RUNTIME_INCONSISTENCY))
    assert "/c" not in story.tree.nodes


def test_access_lists() -> None:
    story = Story()
    own = CreateRequest(OpCode.CREATE, "/own", b"", (Acl(31, Identity("auth", "")),), 0)
    assert story.refused(own) is Code.INVALID_ACL, "nobody has authenticated"
    story.do(own, ANN)
    assert story.tree.nodes["/own"].acls == (Acl(31, ANN),)
    assert story.refused(SetDataRequest("/own", b"", -1)) is Code.NO_AUTH
    story.do(SetDataRequest("/own", b"z", -1), ANN)
    assert story.refused(SetAclRequest("/own", (), -1), ANN) is Code.INVALID_ACL
    story.do(SetAclRequest("/own", READ_ONLY, 0), ANN)
    assert story.tree.nodes["/own"].aversion == 1
    assert story.refused(create("/own/child"), ANN) is Code.NO_AUTH
    for scheme, name in (("sasl", "kafka"), ("x509", "CN=a"), ("digest", "ann"), ("ip", "nowhere"), ("world", "me")):
        acls = (Acl(31, Identity(scheme, name)),)
        assert story.refused(CreateRequest(OpCode.CREATE, "/n", b"", acls, 0)) is Code.INVALID_ACL


def test_a_container_is_deletable_once_it_had_children() -> None:
    story = Story()
    story.do(create("/c", CreateMode.CONTAINER, OpCode.CREATE_CONTAINER))
    assert deletable_containers(story.tree) == []
    story.do(create("/c/child"))
    assert deletable_containers(story.tree) == []
    story.do(DeleteRequest("/c/child", -1))
    assert deletable_containers(story.tree) == [DeleteTxn("/c")]
