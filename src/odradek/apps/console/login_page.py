"""The login page, the only one without a session. It loads no other file."""

from odradek.apps.console.markup import Html, tag, together

_STYLE = Html("""
:root { color-scheme: light dark; --ink: #16202b; --paper: #f6f7f9; --card: #fff; --line: #d9dee5; --accent: #c2410c; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6eaf0; --paper: #10151b; --card: #171e26; --line: #2b3541; --accent: #fb923c; } }
body { margin: 0; min-height: 100vh; display: grid; place-items: center; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif; }
form { background: var(--card); border: 1px solid var(--line); border-radius: 12px; padding: 28px; width: 300px; }
h1 { font-size: 18px; margin: 0 0 16px; } label { display: block; font-size: 13px; margin: 12px 0 4px; }
input { width: 100%; box-sizing: border-box; padding: 8px 10px; border: 1px solid var(--line); border-radius: 8px;
  background: transparent; color: inherit; font: inherit; }
button { margin-top: 20px; width: 100%; padding: 9px; border: 0; border-radius: 8px; background: var(--accent);
  color: var(--card); font: inherit; font-weight: 600; cursor: pointer; }
p { color: var(--accent); margin: 12px 0 0; font-size: 13px; }
""")


def login_page(label: str, name: str = "", problem: str = "") -> str:
    form = tag(
        "form",
        tag("h1", "Odradek"),
        tag("label", label, for_="name"),
        tag("input", id="name", name="name", value=name, maxlength=256, autocomplete="username", required=True),
        tag("label", "Password", for_="password"),
        tag("input", id="password", name="password", type="password", autocomplete="current-password", required=True),
        tag("p", problem, role="alert") if problem else None,
        tag("button", "Log in"),
        method="post",
        action="/login",
    )
    head = together(
        tag("title", "Log in · Odradek"),
        Html('<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'),
        tag("style", _STYLE),
    )
    return str(Html("<!doctype html>") + tag("html", tag("head", head), tag("body", form), lang="en"))
