"""A pipeline's graph on the terminal: each input as the root of a tree, down to the sinks."""

from odradek.apps.pipeline.graph.core.pipeline_graph import Node, count_text


def graph_text(nodes: list[Node]) -> str:
    """Draw the graph; a node with several inputs is drawn below each of them."""
    lines: list[str] = []
    for node in nodes:
        if not node.inputs and node.kind != "sink":
            lines.append(_node_text(node))
            lines += _below(node, nodes, "")
    return "\n".join(lines)


def _below(node: Node, nodes: list[Node], indent: str) -> list[str]:
    lines: list[str] = []
    readers = [reader for reader in nodes if node.name in reader.inputs]
    for reader in readers:
        is_last = reader is readers[-1]
        lines.append(f"{indent}{'└─▶ ' if is_last else '├─▶ '}{_node_text(reader)}")
        lines += _below(reader, nodes, indent + ("    " if is_last else "│   "))
    return lines


def _node_text(node: Node) -> str:
    facts = ", ".join(fact for fact in (node.kind, node.detail, count_text(node)) if fact)
    return f"{node.name} ({facts})"
