// HTML that the server renders anew and the browser changes only where it differs, so that focus, selection and
// scrolling survive. Clicks on [data-act] go to the server with the element's data attributes.
function sync(from, to) {
  if (from.nodeType !== to.nodeType || from.nodeName !== to.nodeName) {
    from.replaceWith(to.cloneNode(true));
    return;
  }
  if (from.nodeType !== Node.ELEMENT_NODE) {
    if (from.nodeValue !== to.nodeValue) from.nodeValue = to.nodeValue;
    return;
  }
  if (from.isEqualNode(to)) return;
  for (const name of from.getAttributeNames()) {
    if (!to.hasAttribute(name) && !(name === "open" && from.nodeName === "DETAILS")) from.removeAttribute(name);
  }
  for (const name of to.getAttributeNames()) {
    if (from.getAttribute(name) !== to.getAttribute(name)) from.setAttribute(name, to.getAttribute(name));
  }
  syncChildren(from, to);
}

function syncChildren(from, to) {
  const old = Array.from(from.childNodes);
  const now = Array.from(to.childNodes);
  now.forEach((child, i) => (i < old.length ? sync(old[i], child) : from.appendChild(child.cloneNode(true))));
  old.slice(now.length).forEach((child) => child.remove());
}

// Of several clusters the address of the page names one, and so does an address that is copied.
function shared(link) {
  const to = new URL(link, location.origin);
  const cluster = new URLSearchParams(location.search).get("cluster");
  if (cluster) to.searchParams.set("cluster", cluster);
  return to.href;
}

// The text beside the button, or an address on this console; the clipboard needs https or loopback.
function copy(button) {
  const text =
    button.dataset.copy === "link"
      ? shared(button.dataset.link)
      : button.closest(".body").querySelector("[data-part=value]").textContent;
  const said = button.textContent;
  const tell = (what) => {
    button.textContent = what;
    setTimeout(() => (button.textContent = said), 1200);
  };
  if (!navigator.clipboard) return tell("no clipboard");
  navigator.clipboard.writeText(text).then(() => tell("Copied"), () => tell("refused"));
}

export default {
  template: "<div></div>",
  props: { html: String },
  mounted() {
    this.$el.innerHTML = this.html;
    this.$el.addEventListener("click", (event) => {
      const copied = event.target.closest("[data-copy]");
      if (copied) {
        event.preventDefault();
        copy(copied);
        return;
      }
      const target = event.target.closest("[data-act]");
      if (!target || target.hasAttribute("disabled")) return;
      event.preventDefault();
      this.$emit("act", { ...target.dataset });
    });
  },
  watch: {
    html(html) {
      const template = document.createElement("div");
      template.innerHTML = html;
      syncChildren(this.$el, template);
    },
  },
};
