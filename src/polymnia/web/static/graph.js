// The graph page: draws entities with sigma.js. The table below it has the same nodes and needs no script.
(() => {
  "use strict";
  const box = document.getElementById("graph");
  if (!box) return;
  const $ = (selector, at = box) => at.querySelector(selector);
  const $$ = (selector, at = box) => [...at.querySelectorAll(selector)];
  const TABLE_ROWS = 50;
  const isNarrow = () => box.clientWidth < 700;
  const words = new Intl.NumberFormat("en");
  const plural = (count, noun, several) => `${words.format(count)} ${count === 1 ? noun : several}`;
  const token = JSON.parse(document.body.getAttribute("hx-headers"))["X-Form-Token"];

  // Control characters and overrides of the writing direction, as the server shows them.
  const show = (text) => text.replace(/[\u0000-\u0008\u000b-\u001f\u007f\u0080-\u009f\u202a-\u202e\u2066-\u2069\ufeff]/g, "\u2423");
  const short = (text, most = 40) => (text.length > most ? `${text.slice(0, most - 1)}\u2026` : text);

  const MAX_EDGE_NAMES = 60, MAX_LABELS = 250;
  const state = { view: null, selected: null, hovered: null, hidden: new Set(), path: [], places: new Map() };
  let renderer = null, graph = null, colours = {}, worker = null;

  // ---- colours ----

  function readColours() {
    const style = getComputedStyle(document.documentElement);
    const of = (name) => style.getPropertyValue(name).trim();
    colours = { text: of("--text"), quiet: of("--text-2"), line: of("--line-strong"), accent: of("--accent"), under: of("--bg-side"), raised: of("--bg-raised"), edge: of("--edge"), mono: of("--mono"), font: of("--font") || "sans-serif" };
    colours.types = Array.from({ length: 11 }, (_, number) => of(`--t${number}`));
  }

  function mix(colour, share) {
    const [one, other] = [colour, colours.under].map((hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16)));
    return `#${one.map((value, at) => Math.round(value * share + other[at] * (1 - share)).toString(16).padStart(2, "0")).join("")}`;
  }

  // ---- data ----

  function fields(given) {
    const sent = new URLSearchParams();
    for (const [name, value] of Object.entries(given)) for (const each of [value].flat()) if (each !== null && each !== "") sent.append(name, each);
    if (box.dataset.workspace) sent.set("w", box.dataset.workspace);
    const kinds = chosenKinds();
    if (kinds) for (const each of kinds.length ? kinds : [""]) sent.append("kind", each);
    return sent;
  }

  // The chosen types of relations; null while all are.
  function chosenKinds() {
    const boxes = $$("#kinds input");
    return boxes.every((each) => each.checked) ? null : boxes.filter((each) => each.checked).map((each) => each.value);
  }

  // Loads run one after another, so that a quick second one starts from what the first has drawn. `ask` returns the fields.
  let loads = Promise.resolve();
  const load = (ask, settled = false) => (loads = loads.then(() => loadNow(ask, settled)));

  async function loadNow(ask, settled) {
    box.classList.add("busy");
    try {
      const answer = await fetch(box.dataset.data, { method: "POST", headers: { "X-Form-Token": token }, body: fields(ask()) });
      if (answer.status === 404) throw new Error("There is no such entity.");
      if (!answer.ok) throw new Error(`the server answered ${answer.status}: reload the page`);
      state.view = await answer.json();
      state.path = state.view.path || state.path;
      build();
      await place(settled);
      draw();
    } catch (problem) {
      say(String(problem.message || problem));
    } finally {
      box.classList.remove("busy");
    }
  }

  const names = () => state.view.nodes.map(([name]) => name).filter((name) => !state.hidden.has(name));

  function build() {
    graph = new window.graphology.MultiDirectedGraph();
    const shown = new Set(names());
    const degree = new Map();
    for (const [source, target] of state.view.edges) for (const end of [source, target]) degree.set(end, (degree.get(end) || 0) + 1);
    state.view.nodes.forEach(([name, type, hidden], at) => {
      if (!shown.has(name)) return;
      const [kind, number] = state.view.types[type];
      const size = Math.min(16, 5 + 1.6 * Math.sqrt((degree.get(at) || 0) + hidden));
      graph.addNode(name, { title: show(name), kind, type_number: number, more: hidden, size, ...start(name, at) });
    });
    for (const [source, target, kind] of state.view.edges) {
      const [one, other] = [source, target].map((at) => state.view.nodes[at][0]);
      if (one === other || !graph.hasNode(one) || !graph.hasNode(other)) continue;
      const label = state.view.kinds[kind];
      const edge = graph.edges(one, other)[0];
      if (edge === undefined) graph.addEdge(one, other, { type: "arrow", weight: 1, size: 2.4, title: label });
      else if (!graph.getEdgeAttribute(edge, "title").split(", ").includes(label)) graph.updateEdgeAttribute(edge, "title", (old) => `${old}, ${label}`);
    }
  }

  // Where a node begins: where it was, or on a spiral around the node it came from.
  function start(key, at) {
    const known = state.places.get(key);
    if (known) return known;
    const centre = state.places.get(state.selected) || { x: 0, y: 0 };
    return { x: centre.x + 20 * Math.sqrt(at + 1) * Math.cos(2.4 * at), y: centre.y + 20 * Math.sqrt(at + 1) * Math.sin(2.4 * at) };
  }

  // ---- layout ----

  const stagePadding = () => (isNarrow() ? 60 : 90);

  function place(settled) {
    const keys = graph.nodes();
    const at = new Map(keys.map((key, number) => [key, number]));
    const padding = 2 * stagePadding();
    const size = [Math.max(200, box.clientWidth - padding), Math.max(200, box.clientHeight - padding)];
    const message = {
      nodes: keys.map((key) => { const { x, y, size: radius } = graph.getNodeAttributes(key); return [x, y, radius + 14]; }),
      edges: graph.mapEdges((edge, { weight }, source, target) => [at.get(source), at.get(target), weight]),
      size, settled,
    };
    if (keys.length < 2) return Promise.resolve();
    worker ||= new Worker(box.dataset.layout);
    return new Promise((done, failed) => {
      worker.onmessage = ({ data }) => {
        data.forEach(([x, y], number) => {
          graph.mergeNodeAttributes(keys[number], { x, y });
          state.places.set(keys[number], { x, y });
        });
        done();
      };
      worker.onerror = () => failed(new Error("the layout failed: reload the page"));
      worker.postMessage(message);
    });
  }

  // ---- drawing ----

  function draw() {
    if (renderer) { renderer.setGraph(graph); fitCamera(); } else startRenderer();
    renderer.refresh();
    describe();
    fillKinds();
    fillTable();
    if (!state.view.nodes.length) setView("table");
  }

  function startRenderer() {
    renderer = new window.Sigma(graph, $("#canvas"), {
      allowInvalidContainer: true, renderLabels: false, renderEdgeLabels: false, stagePadding: stagePadding(), minCameraRatio: 0.02, maxCameraRatio: 4, zIndex: true,
      minEdgeThickness: 1.2, defaultDrawNodeHover: () => {}, nodeReducer: styleNode, edgeReducer: styleEdge,
    });
    renderer.on("clickNode", ({ node }) => select(node));
    // With a mouse the browser tells a double click: sigma.js waits 300 ms for the second one, which a busy computer exceeds.
    renderer.on("doubleClickNode", ({ node, event, preventSigmaDefault }) => { preventSigmaDefault(); if (event.original.type === "touchend") expand(node); });
    $("#canvas").addEventListener("dblclick", () => { if (state.selected !== null) expand(state.selected); });
    renderer.on("clickStage", () => select(null));
    renderer.on("enterNode", ({ node }) => hover(node));
    renderer.on("leaveNode", () => hover(null));
    renderer.on("afterRender", drawLabels);
  }

  const fitCamera = () => renderer.getCamera().setState({ x: 0.5, y: 0.5, ratio: 1, angle: 0 });
  const focused = () => state.hovered ?? state.selected;
  const isNear = (node) => { const at = focused(); return at !== null && graph.hasNode(at) && (node === at || graph.areNeighbors(node, at)); };
  const isAside = (node) => focused() !== null && graph.hasNode(focused()) && !isNear(node) && !state.path.includes(node);
  const isOnPath = (edge) => { const ends = graph.extremities(edge); return state.path.some((name, at) => at && ends.includes(name) && ends.includes(state.path[at - 1])); };

  function styleNode(node, data) {
    const colour = colours.types[data.type_number] || colours.types[0];
    return { ...data, color: mix(colour, isAside(node) ? 0.2 : 1), zIndex: isNear(node) ? 1 : 0 };
  }

  function styleEdge(edge, data) {
    const touches = focused() !== null && graph.hasNode(focused()) && graph.extremities(edge).includes(focused());
    const marked = touches || isOnPath(edge);
    const faint = focused() !== null && !marked;
    const colour = marked ? colours.accent : colours.edge;
    return { ...data, color: faint ? mix(colours.edge, 0.2) : colour, size: isOnPath(edge) ? 3.5 : data.size * (touches ? 1.4 : 1), marked, zIndex: marked ? 1 : 0 };
  }

  // ---- labels: each where it overlaps nothing, the important ones first ----

  function drawLabels() {
    const context = renderer.getCanvases().labels.getContext("2d");
    const { width, height } = renderer.getDimensions();
    const taken = [];
    const nodes = graph.nodes().map((key) => {
      const data = renderer.getNodeDisplayData(key);
      const at = renderer.framedGraphToViewport(data);
      return { key, ...graph.getNodeAttributes(key), ...at, size: renderer.scaleSize(data.size), near: isNear(key), aside: isAside(key) };
    }).filter(({ x, y, size }) => x > -size && y > -size && x < width + size && y < height + size);
    for (const { x, y, size } of nodes) taken.push([x - size, y - size, x + size, y + size]);
    context.lineJoin = "round";
    const rank = ({ key, near, size }) => (key === state.selected || key === state.hovered ? 1e6 : 0) + (state.path.includes(key) ? 1e5 : 0) + (near ? 1e4 : 0) + size;
    nodes.sort((one, other) => rank(other) - rank(one));
    for (const node of nodes) drawRings(context, node);
    for (const node of nodes.slice(0, MAX_LABELS)) if (!node.aside) drawNodeLabel(context, node, taken, width);
    drawEdgeLabels(context, nodes, taken);
  }

  function drawRings(context, node) {
    if (node.key === state.selected) ring(context, node, colours.accent, 2.5, 4);
    else if (node.key === state.hovered || node.key === state.cursor) ring(context, node, colours.accent, 2, 3);
  }

  function ring(context, { x, y, size }, colour, width, gap) {
    context.beginPath();
    context.arc(x, y, size + gap, 0, 2 * Math.PI);
    context.strokeStyle = colour;
    context.lineWidth = width;
    context.stroke();
  }

  const isFree = (box, taken) => !taken.some((other) => box[0] < other[2] && box[2] > other[0] && box[1] < other[3] && box[3] > other[1]);

  function drawNodeLabel(context, node, taken, width) {
    const text = short(node.title, isNarrow() ? 18 : 32) + (node.more ? ` +${words.format(node.more)}` : "");
    context.font = `500 12.5px ${colours.font}`;
    const wide = context.measureText(text).width, high = 15;
    const { x, y, size } = node;
    const spots = [[x + size + 5, y - high / 2], [x - size - 5 - wide, y - high / 2], [x - wide / 2, y + size + 4], [x - wide / 2, y - size - 4 - high]];
    const must = node.key === state.selected || node.key === state.hovered;
    const spot = spots.find(([left, top]) => left >= 0 && left + wide <= width && isFree([left, top, left + wide, top + high], taken)) || (must ? spots[0] : null);
    if (!spot) return;
    taken.push([spot[0] - 2, spot[1], spot[0] + wide + 2, spot[1] + high]);
    write(context, text, spot[0], spot[1] + 12, "500 12.5", colours.text);
  }

  function write(context, text, x, y, style, colour, font = colours.font) {
    context.textAlign = "left";
    context.font = `${style}px ${font}`;
    context.strokeStyle = colours.under;
    context.lineWidth = 4;
    context.strokeText(text, x, y);
    context.fillStyle = colour;
    context.fillText(text, x, y);
  }

  // The names of relations: all if there are few in view, else those of the entity in focus.
  function drawEdgeLabels(context, nodes, taken) {
    const places = new Map(nodes.map((node) => [node.key, node]));
    const inView = graph.filterEdges((edge, data, source, target) => places.has(source) && places.has(target));
    for (const edge of inView) {
      const { marked } = renderer.getEdgeDisplayData(edge);
      if (!marked && (focused() !== null || inView.length > MAX_EDGE_NAMES)) continue;
      const [one, other] = graph.extremities(edge).map((key) => places.get(key));
      const text = short(graph.getEdgeAttribute(edge, "title"), 36);
      context.font = `11px ${colours.mono}`;
      const wide = context.measureText(text).width, x = (one.x + other.x) / 2 - wide / 2, y = (one.y + other.y) / 2 - 7;
      if (!isFree([x, y, x + wide, y + 14], taken)) continue;
      taken.push([x, y, x + wide, y + 14]);
      write(context, text, x, y + 11, "400 11", marked ? colours.accent : colours.quiet, colours.mono);
    }
  }

  // ---- hover: neighbours in ink, a card at the side with fewer of them ----

  function hover(node) {
    state.hovered = node;
    renderer.refresh({ skipIndexation: true });
    const card = $("#hover");
    card.hidden = node === null || isNarrow();
    if (card.hidden) return;
    const { title, kind } = graph.getNodeAttributes(node);
    const relations = graph.mapEdges(node, (edge, data, source, target) => (source === node ? `\u2192 ${data.title} ${show(target)}` : `\u2190 ${data.title} ${show(source)}`));
    card.replaceChildren(element("h3", {}, short(title, 60)), element("p", { class: "faint tiny" }, `${kind}, ${plural(relations.length, "relation", "relations")}`), element("ul", {}, ...relations.slice(0, 6).map((line) => element("li", {}, short(line, 60)))));
    const at = renderer.graphToViewport(graph.getNodeAttributes(node));
    const right = graph.neighbors(node).filter((other) => graph.getNodeAttribute(other, "x") > graph.getNodeAttribute(node, "x")).length;
    const { width, height } = renderer.getDimensions();
    const isLeft = right > graph.neighbors(node).length / 2 ? at.x > 300 : at.x + 300 > width;
    card.style.left = `${isLeft ? at.x - 290 : at.x + 26}px`;
    card.style.top = `${Math.max(8, Math.min(at.y + 16, height - card.offsetHeight - 8))}px`;
  }

  // ---- selection and actions ----

  function select(node) {
    state.selected = node;
    renderer?.refresh({ skipIndexation: true });
    const panel = $("#selected");
    panel.hidden = node === null;
    $("#unselected").hidden = node !== null;
    if (node === null) return;
    state.cursor = node;
    htmx.ajax("GET", `${box.dataset.panel}?${new URLSearchParams({ name: node, ...(box.dataset.workspace && { w: box.dataset.workspace }) })}`, { target: "#selected", swap: "innerHTML" });
  }

  function expand(node) {
    if (state.view.nodes.length >= Number(box.dataset.limit)) return say(`${words.format(box.dataset.limit)} entities are on the screen; hide some first`);
    state.selected = node;
    return load(() => ({ name: names(), expand: node, exact: 1 }), true);
  }

  function hide(node) {
    state.hidden.add(node);
    select(null);
    return load(() => ({ name: names(), exact: 1 }), true);
  }

  function showPath(from, to) {
    return load(() => ({ name: names(), from, to, exact: 1 }), true).then(() => {
      if (state.view.path && !state.view.path.length) say("Nothing connects them.");
    });
  }

  function say(text) {
    const line = $("#graph-status");
    line.textContent = text;
  }

  function describe() {
    const count = graph.order;
    const title = state.view.title ? ` for ${show(state.view.title)}` : "";
    const all = plural(state.view.entities, "entity", "entities");
    say(`${words.format(count)} of ${all} on screen${state.view.cut ? ", no more fit" : ""}`);
    $("#canvas").setAttribute("aria-label", `${plural(count, "entity", "entities")}${title}. The same as a table is one button away.`);
    const legend = $("#legend");
    legend.replaceChildren(...state.view.types.slice(0, 12).map(([name, number]) => element("li", {}, element("span", { class: `dot t${number}`, "aria-hidden": "true" }), show(name))));
    legend.hidden = false;
    const path = $("#path");
    path.hidden = !state.path.length;
    path.replaceChildren(element("h3", {}, "Path"), element("ol", { class: "plain" }, ...state.path.map((name) => element("li", {}, show(name)))));
  }

  // ---- flying to an entity, and keys in the drawing ----

  async function flyTo(name) {
    await loads;
    if (!graph) return null;
    if (!graph.hasNode(name)) await load(() => ({ name }));
    if (!graph.hasNode(name)) return null;
    return land(name);
  }

  function land(name) {
    select(name);
    renderer.refresh();
    const { x, y } = renderer.getNodeDisplayData(name);
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    renderer.getCamera().animate({ x, y, ratio: Math.min(0.6, renderer.getCamera().ratio) }, { duration: still ? 0 : 500 });
    announce(name);
  }

  function announce(node) {
    const { title, kind } = graph.getNodeAttributes(node);
    say(`${title}, ${kind}, ${plural(graph.degree(node), "relation", "relations")}`);
  }

  const DIRECTIONS = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };

  // Go to the nearest node in the direction of an arrow key.
  function step([dx, dy]) {
    const here = state.cursor && graph.hasNode(state.cursor) ? state.cursor : null;
    const from = here ? renderer.graphToViewport(graph.getNodeAttributes(here)) : { x: renderer.getDimensions().width / 2, y: renderer.getDimensions().height / 2 };
    let best = null, least = Infinity;
    graph.forEachNode((node, data) => {
      const at = renderer.graphToViewport(data);
      const along = (at.x - from.x) * dx + (at.y - from.y) * dy, across = Math.abs((at.x - from.x) * dy) + Math.abs((at.y - from.y) * dx);
      if (node === here || (here && along <= 0)) return;
      const far = Math.abs(along) + 2 * across;
      if (far < least) { least = far; best = node; }
    });
    if (best === null) return;
    state.cursor = best;
    hover(best);
    announce(best);
  }

  const KEYS = {
    "Enter": () => { if (state.cursor) { if (state.selected === state.cursor) expand(state.cursor); else select(state.cursor); } },
    "f": () => { if (state.cursor) load(() => ({ name: state.cursor })); },
    "p": () => { if (state.cursor) { select(state.cursor); setTimeout(() => $("#path-to")?.focus(), 300); } },
    "+": () => ACTIONS["zoom-in"](), "-": () => ACTIONS["zoom-out"](), "0": () => fitCamera(),
    "Escape": () => { hover(null); select(null); },
  };

  $("#canvas").addEventListener("keydown", (event) => {
    if (!graph || event.ctrlKey || event.metaKey || event.altKey) return;
    const action = DIRECTIONS[event.key] ? () => step(DIRECTIONS[event.key]) : KEYS[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  });
  $("#canvas").addEventListener("blur", () => { if (state.hovered) hover(null); });
  $("#fly").addEventListener("submit", (event) => { event.preventDefault(); const name = $("#fly-to").value.trim(); if (name) flyTo(name); });

  // Offer the types of relations that touch what is drawn; those that were switched off stay off.
  function fillKinds() {
    $("#kinds-box").hidden = !state.view.relation_types.length;
    const off = new Set($$("#kinds input:not(:checked)").map((each) => each.value));
    const rows = state.view.relation_types.map(([name, count]) => {
      const tick = element("input", { type: "checkbox", name: "kind", value: name });
      tick.checked = !off.has(name);
      return element("label", { class: "row" }, tick, element("bdi", {}, short(show(name))), element("span", { class: "faint tiny end num" }, words.format(count)));
    });
    const legend = $("#kinds legend");
    $("#kinds").replaceChildren(legend, ...rows);
  }

  // ---- table ----

  function element(tag, attributes, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children);
    return made;
  }

  let rows = TABLE_ROWS;

  function fillTable() {
    const body = $("#graph-rows");
    const all = state.view.nodes.filter(([name]) => !state.hidden.has(name)).map(entityRow);
    body.replaceChildren(...all.slice(0, rows));
    const more = $("#more-rows");
    more.hidden = all.length <= rows;
    more.textContent = `Show ${words.format(Math.min(TABLE_ROWS, all.length - rows))} more of ${words.format(all.length)}`;
    $("#graph-pager")?.remove();
  }

  function entityRow([name, type, hidden]) {
    const [kind, number] = state.view.types[type];
    const dot = element("span", { class: `dot t${number}`, "aria-hidden": "true" });
    const link = element("a", { href: `${box.dataset.entity}?${new URLSearchParams({ name, ...(box.dataset.workspace && { w: box.dataset.workspace }) })}` }, element("bdi", {}, short(show(name))));
    const action = hidden ? button("Expand", { "data-expand": name }, name) : "";
    return element("tr", {}, element("td", {}, dot, " ", link), element("td", {}, element("bdi", {}, show(kind))), element("td", { class: "num" }, hidden ? words.format(hidden) : "\u2013"), element("td", { class: "right" }, action));
  }

  function button(text, attributes, about) {
    return element("button", { class: "btn small", type: "button", ...attributes }, text, element("span", { class: "vh" }, ` ${show(about).slice(0, 80)}`));
  }

  // ---- exports ----

  function exportPicture() {
    renderer.refresh();
    const layers = Object.values(renderer.getCanvases());
    const whole = document.createElement("canvas");
    [whole.width, whole.height] = [layers[0].width, layers[0].height];
    const context = whole.getContext("2d");
    context.fillStyle = colours.under;
    context.fillRect(0, 0, whole.width, whole.height);
    for (const name of ["edges", "nodes", "labels"]) {
      const layer = renderer.getCanvases()[name];
      if (layer) context.drawImage(layer, 0, 0, whole.width, whole.height);
    }
    whole.toBlob((blob) => {
      const link = element("a", { href: URL.createObjectURL(blob), download: "graph.png" });
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
    });
  }

  // ---- clicks ----

  const ACTIONS = {
    "zoom-in": () => renderer.getCamera().animatedZoom({ duration: 0, factor: 1.5 }),
    "zoom-out": () => renderer.getCamera().animatedUnzoom({ duration: 0, factor: 1.5 }),
    "fit": fitCamera,
    "png": exportPicture,
    "graph": () => setView("graph"),
    "table": () => setView("table"),
    "more": () => { rows += TABLE_ROWS; fillTable(); },
    "close": () => select(null),
    "expand": () => expand(state.selected),
    "hide": () => hide(state.selected),
  };

  function setView(name) {
    box.classList.toggle("as-table", name === "table");
    for (const each of $$("[data-do=graph], [data-do=table]")) each.setAttribute("aria-pressed", String(each.dataset.do === name));
    if (name === "graph" && renderer) { renderer.resize(); renderer.refresh(); }
  }

  box.addEventListener("click", (event) => {
    const pressed = event.target.closest("button, a");
    if (!pressed) return;
    if (pressed.dataset.do && ACTIONS[pressed.dataset.do]) { event.preventDefault(); pressed.closest("details")?.removeAttribute("open"); ACTIONS[pressed.dataset.do](); }
    else if (pressed.dataset.expand !== undefined) expand(pressed.dataset.expand);
  });
  box.addEventListener("submit", (event) => {
    if (!event.target.matches("[data-path]")) return;
    event.preventDefault();
    const given = new FormData(event.target);
    showPath(given.get("from"), given.get("to"));
  });
  $("#kinds")?.addEventListener("change", () => load(() => ({ name: names(), exact: 1 }), true));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { readColours(); renderer?.refresh(); });

  // ---- start ----

  function hasWebgl() {
    try { return Boolean(document.createElement("canvas").getContext("webgl2")); } catch { return false; }
  }

  if (!hasWebgl()) {
    $("#no-webgl").hidden = false;
    return;
  }
  // Without WebGL, sigma.js fails as soon as it is loaded.
  function loadScript(address) {
    return new Promise((done, failed) => {
      const script = element("script", { src: address });
      script.addEventListener("load", done);
      script.addEventListener("error", () => failed(new Error("a script is missing: reload the page")));
      document.head.append(script);
    });
  }

  readColours();
  box.classList.add("drawn");
  // Everything of the address but the workspace and the chosen types, which `fields` adds.
  const asked = {};
  for (const [name, value] of new URLSearchParams(location.search)) if (!["w", "kind", "after"].includes(name)) (asked[name] ||= []).push(value);
  const scripts = Promise.all([loadScript(box.dataset.graphology), loadScript(box.dataset.sigma)]);
  scripts.then(() => load(() => asked), (problem) => say(problem.message)).then(() => {
    const only = asked.name?.length === 1 ? asked.name[0] : null;
    if (only !== null && !isNarrow() && graph?.hasNode(only)) select(only);
  });
})();
