// The page: rounds of the cluster four times a second, its state drawn, commands of the buttons kept in the address.
import { loadPyodide } from "./pyodide/pyodide.mjs";

const ROUND_MS = 250;
const OFFSETS_SHOWN = 40;
const part = (id) => document.getElementById(id);

let python, state, timer, seed, done; // done: [round, command, broker]

function element(tag, text = "", classes = "") {
  const made = document.createElement(tag);
  made.textContent = text;
  made.className = classes;
  return made;
}

// ---- the address: #seed=7&do=12.kill.1,40.start.1

function readAddress() {
  const words = new URLSearchParams(location.hash.slice(1));
  seed = Math.abs(parseInt(words.get("seed"), 10)) || 1;
  done = (words.get("do") || "").split(",").map((each) => each.split(".")).filter((each) => each.length === 3)
    .map(([round, command, broker]) => [Number(round), command, Number(broker)]);
}

function writeAddress() {
  const commands = done.map((each) => each.join(".")).join(",");
  history.replaceState(null, "", `#seed=${seed}${commands && `&do=${commands}`}`);
}

// ---- rounds and commands

function begin() {
  part("seed").value = seed;
  state = JSON.parse(python.begin(seed));
  for (const [round, command, broker] of done) {
    state = JSON.parse(python.advance(round - state.round));
    state = JSON.parse(python.command(command, broker));
  }
  writeAddress();
  draw();
}

function advance() {
  state = JSON.parse(python.advance(1));
  draw();
}

function order(command, broker) {
  done.push([state.round, command, broker]);
  state = JSON.parse(python.command(command, broker));
  writeAddress();
  draw();
}

function remedies(broker) {
  if (!broker.is_alive) return ["start"];
  return [...(broker.is_frozen ? ["thaw"] : []), ...(broker.is_cut_off ? ["connect"] : [])];
}

function heal() {
  for (const broker of state.brokers) remedies(broker).forEach((command) => order(command, broker.broker_id));
}

function run(runs) {
  clearInterval(timer);
  timer = runs ? setInterval(advance, ROUND_MS) : undefined;
  part("pause").textContent = runs ? "pause" : "go on";
}

// ---- the picture

const LABELS = { kill: "kill -9", freeze: "freeze", cut: "cut off", start: "start", thaw: "thaw", connect: "connect" };

function commandsFor(broker) {
  if (!broker.is_alive) return ["start"];
  return ["kill", broker.is_frozen ? "thaw" : "freeze", broker.is_cut_off ? "connect" : "cut"];
}

function drawBroker(broker, ends) {
  const card = element("div", "", broker.is_alive ? "broker" : "broker gone");
  card.dataset.broker = broker.broker_id;
  const title = card.appendChild(element("h3", `broker ${broker.broker_id}`));
  const tags = [
    [broker.is_controller, "controller", "controller"], [!broker.is_alive, "dead", "bad"], [broker.is_frozen, "frozen", "bad"],
    [broker.is_cut_off, "cut off", "bad"], [!broker.has_session, "no session", ""],
  ];
  for (const [shown, text, kind] of tags) if (shown) title.append(element("span", text, `tag ${kind}`));
  const table = card.appendChild(element("table"));
  for (const replica of broker.replicas) {
    const row = table.insertRow();
    row.className = replica.is_leader ? "leader" : "";
    for (const text of [replica.partition, replica.is_leader ? "leader" : "follower", `${replica.high_watermark} / ${replica.log_end_offset}`])
      row.insertCell().textContent = text;
    row.title = `leader epoch ${replica.leader_epoch}, high watermark ${replica.high_watermark}, log end offset ${replica.log_end_offset}`;
    const first = Math.max(0, ends[replica.partition] - OFFSETS_SHOWN);
    const bar = row.insertCell().appendChild(element("div", "", "log"));
    for (const [kind, offset] of [["end", replica.log_end_offset], ["committed", replica.high_watermark]])
      bar.appendChild(element("i", "", kind)).style.width = `${Math.max(0, offset - first) / OFFSETS_SHOWN * 100}%`;
  }
  const buttons = card.appendChild(element("div", "", "buttons"));
  for (const command of commandsFor(broker))
    buttons.appendChild(element("button", LABELS[command])).onclick = () => order(command, broker.broker_id);
  return card;
}

function draw() {
  const ends = {};
  for (const broker of state.brokers)
    for (const { partition, log_end_offset } of broker.replicas) ends[partition] = Math.max(ends[partition] || 0, log_end_offset);
  part("brokers").replaceChildren(...state.brokers.map((broker) => drawBroker(broker, ends)));
  const table = part("partitions");
  table.replaceChildren();
  const rows = state.partitions.map((each) =>
    [each.name, each.leader < 0 ? "none" : each.leader, each.leader_epoch, each.isr.join(", ")]);
  for (const cells of [["partition", "leader", "epoch", "ISR"], ...rows]) {
    const row = table.insertRow();
    for (const cell of cells) row.insertCell().textContent = cell;
  }
  part("time").textContent = `${(state.ms / 1000).toFixed(1)} s, round ${state.round}`;
  part("verdict").className = state.fault ? "bad" : "";
  part("verdict").textContent = state.fault || `${state.acknowledged} records acknowledged, none lost`;
  part("events").textContent = [...state.events].reverse().join("\n");
  document.body.dataset.round = state.round;
}

// ---- the beginning

async function main() {
  readAddress();
  const pyodide = await loadPyodide({ indexURL: "./pyodide/", env: { PYTHONHASHSEED: "0", HOME: "/home/pyodide" } });
  const modules = await (await fetch("modules.zip")).arrayBuffer();
  pyodide.unpackArchive(modules, "zip");
  python = pyodide.pyimport("browser");
  part("begin").onclick = () => { seed = Math.abs(parseInt(part("seed").value, 10)) || 1; done = []; begin(); run(true); };
  part("pause").onclick = () => run(timer === undefined);
  part("step").onclick = () => { run(false); advance(); };
  part("heal").onclick = heal;
  window.onhashchange = () => { readAddress(); begin(); };
  begin();
  run(true);
}

main().catch((error) => { part("verdict").className = "bad"; part("verdict").textContent = String(error); throw error; });
