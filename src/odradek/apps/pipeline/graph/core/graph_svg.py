"""A pipeline's graph as SVG: a column per layer, a box per node, a curve per edge. Light and dark, by the reader's."""

from html import escape

from odradek.apps.pipeline.graph.core.pipeline_graph import Node, count_text, layers

_WIDTH, _HEIGHT, _GAP_X, _GAP_Y, _MARGIN = 210, 62, 70, 22, 20
_STYLE = """
text { font: 13px system-ui, sans-serif; fill: #1f2328 } .small { font-size: 11px; fill: #59636e }
rect { fill: #ffffff; stroke: #8c959f; rx: 6px } path { fill: none; stroke: #8c959f }
.source rect, .dimension rect { stroke: #0969da } .sink rect { stroke: #1a7f37 }
@media (prefers-color-scheme: dark) {
  text { fill: #f0f6fc } .small { fill: #9198a1 } rect { fill: #151b23; stroke: #656c76 } path { stroke: #656c76 }
  .source rect, .dimension rect { stroke: #4493f8 } .sink rect { stroke: #3fb950 }
}
"""


def graph_svg(title: str, nodes: list[Node]) -> str:
    columns = layers(nodes)
    places = {
        node.name: (_MARGIN + x * (_WIDTH + _GAP_X), _MARGIN + y * (_HEIGHT + _GAP_Y))
        for x, column in enumerate(columns)
        for y, node in enumerate(column)
    }
    width = 2 * _MARGIN + len(columns) * (_WIDTH + _GAP_X) - _GAP_X
    height = 2 * _MARGIN + max(map(len, columns)) * (_HEIGHT + _GAP_Y) - _GAP_Y
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">'
    edges = [_edge(places[name], places[node.name]) for node in nodes for name in node.inputs]
    boxes = [_box(node, *places[node.name]) for node in nodes]
    return "\n".join(
        [head, f"<title>{escape(title)}</title>", f"<style>{_STYLE}</style>", *edges, *boxes, "</svg>", ""]
    )


def _edge(begin: tuple[int, int], end: tuple[int, int]) -> str:
    x1, y1, x2, y2 = begin[0] + _WIDTH, begin[1] + _HEIGHT // 2, end[0], end[1] + _HEIGHT // 2
    middle = (x1 + x2) // 2
    return f'<path d="M{x1} {y1} C{middle} {y1} {middle} {y2} {x2} {y2}"/>'


def _box(node: Node, x: int, y: int) -> str:
    lines = [(node.name, "", 20), (node.detail, ' class="small"', 37), (count_text(node), ' class="small"', 53)]
    texts = [
        f'<text x="{x + 10}" y="{y + down}"{style}>{escape(_short(text))}</text>' for text, style, down in lines if text
    ]
    box = f'<rect x="{x}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}"/>'
    return f'<g class="{node.kind}">{box}{"".join(texts)}</g>'


def _short(text: str) -> str:
    return text if len(text) <= 32 else f"{text[:31]}…"
