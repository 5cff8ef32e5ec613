// The graph page: draws clusters or entities with sigma.js. The table below it has the same nodes and needs no script.
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

  const state = { view: null, selected: null, hidden: new Set(), path: [], places: new Map() };
  let renderer = null, graph = null, colours = {}, worker = null;

  // ---- colours ----

  function readColours() {
    const style = getComputedStyle(document.documentElement);
    const of = (name) => style.getPropertyValue(name).trim();
    colours = { text: of("--text"), quiet: of("--text-2"), line: of("--line-strong"), accent: of("--accent"), under: of("--bg-side"), raised: of("--bg-raised"), edge: of("--line-control"), font: of("--font") || "sans-serif" };
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
  const isOverview = () => Boolean(state.view?.groups);

  function build() {
    graph = new window.graphology.UndirectedGraph();
    if (isOverview()) buildOverview(); else buildEntities();
  }

  function buildOverview() {
    const most = Math.max(1, ...state.view.groups.map(([, , count]) => count));
    state.view.groups.forEach(([label, type, count, isCluster], at) => {
      const size = Math.max(10, (isNarrow() ? 26 : 40) * Math.sqrt(count / most));
      graph.addNode(String(at), { title: label, count, type_number: isCluster ? type : 0, size, bubble: true, rank: at, ...start(`cluster ${at}`, at) });
    });
    const strongest = Math.max(1, ...state.view.links.map(([, , count]) => count));
    for (const [one, other, count] of state.view.links) {
      graph.addEdge(String(one), String(other), { weight: count / strongest, size: 1 + 3 * Math.sqrt(count / strongest), title: plural(count, "relation", "relations") });
    }
  }

  function buildEntities() {
    const shown = new Set(names());
    const degree = new Map();
    for (const [source, target] of state.view.edges) for (const end of [source, target]) degree.set(end, (degree.get(end) || 0) + 1);
    state.view.nodes.forEach(([name, type, hidden], at) => {
      if (!shown.has(name)) return;
      const [kind, number] = state.view.types[type];
      const size = Math.min(15, 6 + Math.sqrt((degree.get(at) || 0) + hidden));
      graph.addNode(name, { title: show(name), kind, type_number: number, more: hidden, size, rank: at, ...start(name, at) });
    });
    for (const [source, target, kind] of state.view.edges) {
      const [one, other] = [source, target].map((at) => state.view.nodes[at][0]);
      if (one === other || !graph.hasNode(one) || !graph.hasNode(other)) continue;
      const label = state.view.kinds[kind];
      const edge = graph.edge(one, other);
      if (edge === undefined) graph.addEdge(one, other, { weight: 1, size: 1, title: label });
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
      nodes: keys.map((key) => { const { x, y, size: radius } = graph.getNodeAttributes(key); return [x, y, radius + (isOverview() && !isNarrow() ? 24 : 14)]; }),
      edges: graph.mapEdges((edge, { weight }, source, target) => [at.get(source), at.get(target), weight]),
      size, settled,
    };
    if (keys.length < 2) return Promise.resolve();
    worker ||= new Worker(box.dataset.layout);
    return new Promise((done, failed) => {
      worker.onmessage = ({ data }) => {
        data.forEach(([x, y], number) => {
          graph.mergeNodeAttributes(keys[number], { x, y });
          state.places.set(isOverview() ? `cluster ${keys[number]}` : keys[number], { x, y });
        });
        done();
      };
      worker.onerror = () => failed(new Error("the layout failed: reload the page"));
      worker.postMessage(message);
    });
  }

  // ---- drawing ----

  function draw() {
    if (renderer) { renderer.setGraph(graph); renderer.refresh(); fitCamera(); } else startRenderer();
    describe();
    fillKinds();
    fillTable();
  }

  function startRenderer() {
    renderer = new window.Sigma(graph, $("#canvas"), {
      allowInvalidContainer: true, renderEdgeLabels: true, stagePadding: stagePadding(), minCameraRatio: 0.05, maxCameraRatio: 4, zIndex: true,
      labelRenderedSizeThreshold: 9, labelDensity: 0.6, defaultDrawNodeLabel: drawLabel, defaultDrawNodeHover: drawHover, defaultDrawEdgeLabel: drawEdgeLabel,
      nodeReducer: styleNode, edgeReducer: styleEdge,
    });
    renderer.on("clickNode", ({ node }) => select(node));
    // With a mouse the browser tells a double click: sigma.js waits 300 ms for the second one, which a busy computer exceeds.
    renderer.on("doubleClickNode", ({ node, event, preventSigmaDefault }) => { preventSigmaDefault(); if (event.original.type === "touchend") expand(node); });
    $("#canvas").addEventListener("dblclick", () => { if (state.selected !== null) expand(state.selected); });
    renderer.on("clickStage", () => select(null));
  }

  // Move the drawing from under the panel.
  function makeRoom() {
    const { width } = renderer.getDimensions();
    const panel = $("#selected").offsetWidth + 32;
    if (!graph.someNode((node, place) => renderer.graphToViewport(place).x > width - panel)) return;
    const [left, right] = [0, panel / 2].map((x) => renderer.viewportToFramedGraph({ x, y: 0 }).x);
    const ratio = width / (width - panel);
    renderer.getCamera().setState({ x: 0.5 + (right - left) * ratio, ratio });
  }

  const fitCamera = () => renderer.getCamera().setState({ x: 0.5, y: 0.5, ratio: 1, angle: 0 });
  const isNear = (node) => state.selected !== null && graph.hasNode(state.selected) && (node === state.selected || graph.areNeighbors(node, state.selected));
  const isOnPath = (edge) => { const ends = graph.extremities(edge); return state.path.some((name, at) => at && ends.includes(name) && ends.includes(state.path[at - 1])); };

  function styleNode(node, data) {
    const colour = colours.types[data.type_number] || colours.types[0];
    const isNamed = data.rank < (isNarrow() ? 8 : 30) || isNear(node) || state.path.includes(node);
    return { ...data, label: data.title, named: isNamed, color: data.bubble ? mix(colour, 0.2) : colour, stroke: colour, forceLabel: data.bubble || isNamed, zIndex: isNear(node) ? 1 : 0 };
  }

  function styleEdge(edge, data) {
    const touches = state.selected !== null && graph.hasNode(state.selected) && graph.extremities(edge).includes(state.selected);
    const marked = touches || isOnPath(edge);
    return { ...data, color: marked ? colours.accent : colours.line, size: isOnPath(edge) ? 2.5 : data.size * (touches ? 1.5 : 1), label: marked && !(isOverview() && !touches) ? data.title : "", forceLabel: marked, zIndex: marked ? 1 : 0 };
  }

  function drawLabel(context, data) {
    context.textAlign = "center";
    context.lineJoin = "round";
    if (data.bubble || data.key === state.selected) ring(context, data, data.bubble ? data.stroke : colours.accent, 1.5, 0);
    if (data.key === state.selected) ring(context, data, colours.accent, 2.5, 4);
    if (data.bubble && data.size > 12) write(context, words.format(data.count), data.x, data.y + 4, 12, colours.text, null);
    if (data.label && (data.named || !data.bubble)) write(context, short(data.label, isNarrow() ? 18 : 40), data.x, data.y + data.size + 15, 12, colours.text, colours.under);
    if (data.more) badge(context, `+${words.format(data.more)}`, data.x + data.size * 0.7, data.y - data.size - 8);
  }

  function ring(context, data, colour, width, gap) {
    context.beginPath();
    context.arc(data.x, data.y, data.size + gap, 0, 2 * Math.PI);
    context.strokeStyle = colour;
    context.lineWidth = width;
    context.stroke();
  }

  function write(context, text, x, y, size, colour, halo) {
    context.font = `500 ${size}px ${colours.font}`;
    if (halo) { context.strokeStyle = halo; context.lineWidth = 4; context.strokeText(text, x, y); }
    context.fillStyle = colour;
    context.fillText(text, x, y);
  }

  function badge(context, text, x, y) {
    context.font = `500 10.5px ${colours.font}`;
    const width = context.measureText(text).width + 12;
    context.beginPath();
    context.roundRect(x, y, width, 16, 8);
    context.fillStyle = colours.raised;
    context.fill();
    context.strokeStyle = colours.edge;
    context.lineWidth = 1;
    context.stroke();
    context.fillStyle = colours.quiet;
    context.textAlign = "left";
    context.fillText(text, x + 6, y + 12);
    context.textAlign = "center";
  }

  function drawHover(context, data) {
    ring(context, data, colours.accent, 2.5, 3);
    drawLabel(context, { ...data, named: true });
  }

  function drawEdgeLabel(context, edge, source, target) {
    if (!edge.label) return;
    context.textAlign = "center";
    context.lineJoin = "round";
    write(context, short(edge.label), (source.x + target.x) / 2, (source.y + target.y) / 2 + 3, 10.5, colours.quiet, colours.under);
  }

  // ---- selection and actions ----

  function select(node) {
    state.selected = node;
    renderer?.refresh({ skipIndexation: true });
    const panel = $("#selected");
    panel.hidden = node === null;
    if (node === null) return;
    const asked = isOverview() ? { cluster: node } : { name: node };
    htmx.ajax("GET", `${box.dataset.panel}?${new URLSearchParams({ ...asked, ...(box.dataset.workspace && { w: box.dataset.workspace }) })}`, { target: "#selected", swap: "innerHTML" });
  }

  function expand(node) {
    if (isOverview()) return openCluster(node);
    if (state.view.nodes.length >= Number(box.dataset.limit)) return say(`${words.format(box.dataset.limit)} entities are on the screen; hide some first`);
    state.selected = node;
    return load(() => ({ name: names(), expand: node, exact: 1 }), true);
  }

  function openCluster(number) {
    state.selected = null;
    $("#selected").hidden = true;
    return load(() => ({ cluster: number }));
  }

  function hide(node) {
    state.hidden.add(node);
    select(null);
    return load(() => ({ name: names(), exact: 1 }), true);
  }

  function showPath(from, to) {
    return load(() => ({ name: isOverview() ? [] : names(), from, to, exact: 1 }), true).then(() => {
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
    say(isOverview() ? `${plural(count, "group", "groups")} for ${all}` : `${words.format(count)} of ${all} on screen${state.view.cut ? ", no more fit" : ""}`);
    $("#canvas").setAttribute("aria-label", isOverview() ? `Overview of ${plural(count, "group", "groups")} of entities. The same as a table is one button away.` : `${plural(count, "entity", "entities")}${title}. The same as a table is one button away.`);
    const legend = $("#legend");
    if (legend && !isOverview()) {
      legend.replaceChildren(...state.view.types.slice(0, 12).map(([name, number]) => element("li", {}, element("span", { class: `dot t${number}`, "aria-hidden": "true" }), show(name))));
      legend.hidden = false;
    }
    const path = $("#path");
    path.hidden = !state.path.length;
    path.replaceChildren(element("h3", {}, "Path"), element("ol", { class: "plain" }, ...state.path.map((name) => element("li", {}, show(name)))));
  }

  // Offer the types of relations that touch what is drawn; those that were switched off stay off.
  function fillKinds() {
    $("#kinds-box").hidden = isOverview();
    if (isOverview()) return;
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
    const all = isOverview() ? state.view.groups.map((group, at) => groupRow(group, at)) : state.view.nodes.filter(([name]) => !state.hidden.has(name)).map(entityRow);
    body.replaceChildren(...all.slice(0, rows));
    $("#graph-head").replaceChildren(...(isOverview() ? ["Group", "Entities", ""] : ["Entity", "Type", "Not drawn", ""]).map((text) => element("th", { scope: "col" }, text)));
    const more = $("#more-rows");
    more.hidden = all.length <= rows;
    more.textContent = `Show ${words.format(Math.min(TABLE_ROWS, all.length - rows))} more of ${words.format(all.length)}`;
    $("#graph-pager")?.remove();
  }

  function groupRow([label, type, count], at) {
    const dot = element("span", { class: `dot t${type}`, "aria-hidden": "true" });
    return element("tr", {}, element("td", {}, dot, " ", element("bdi", {}, show(label))), element("td", { class: "num" }, words.format(count)), element("td", { class: "right" }, button("Open", { "data-cluster": at }, label)));
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
    for (const name of ["edges", "edgeLabels", "nodes", "labels"]) {
      const layer = renderer.getCanvases()[name];
      if (layer) context.drawImage(layer, 0, 0, whole.width, whole.height);
    }
    whole.toBlob((blob) => {
      const link = element("a", { href: URL.createObjectURL(blob), download: "graph.png" });
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
    });
  }

  function exportText(format) {
    const form = element("form", { method: "post", action: box.dataset.export, hidden: "" });
    for (const [name, value] of [...fields(isOverview() ? { format } : { format, name: names(), exact: 1 }), ["form_token", token]]) form.append(element("input", { type: "hidden", name, value }));
    document.body.append(form);
    form.submit();
    form.remove();
  }

  // ---- clicks ----

  const ACTIONS = {
    "zoom-in": () => renderer.getCamera().animatedZoom({ duration: 0, factor: 1.5 }),
    "zoom-out": () => renderer.getCamera().animatedUnzoom({ duration: 0, factor: 1.5 }),
    "fit": fitCamera,
    "png": exportPicture,
    "mermaid": () => exportText("mermaid"),
    "dot": () => exportText("dot"),
    "graph": () => setView("graph"),
    "table": () => setView("table"),
    "more": () => { rows += TABLE_ROWS; fillTable(); },
    "close": () => select(null),
    "expand": () => expand(state.selected),
    "hide": () => hide(state.selected),
    "open": () => openCluster(state.selected),
  };

  function setView(name) {
    box.classList.toggle("as-table", name === "table");
    for (const each of $$("[data-do=graph], [data-do=table]")) each.setAttribute("aria-pressed", String(each.dataset.do === name));
    if (name === "graph") renderer?.resize() && renderer?.refresh();
  }

  box.addEventListener("click", (event) => {
    const pressed = event.target.closest("button, a");
    if (!pressed) return;
    if (pressed.dataset.do && ACTIONS[pressed.dataset.do]) { event.preventDefault(); pressed.closest("details")?.removeAttribute("open"); ACTIONS[pressed.dataset.do](); }
    else if (pressed.dataset.expand !== undefined) expand(pressed.dataset.expand);
    else if (pressed.dataset.cluster !== undefined) openCluster(pressed.dataset.cluster);
    else if (pressed.dataset.select !== undefined && !isOverview()) { event.preventDefault(); select(pressed.dataset.select); }
  });
  box.addEventListener("submit", (event) => {
    if (!event.target.matches("[data-path]")) return;
    event.preventDefault();
    const given = new FormData(event.target);
    showPath(given.get("from"), given.get("to"));
  });
  $("#kinds")?.addEventListener("change", () => { if (!isOverview()) load(() => ({ name: names(), exact: 1 }), true); });
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
  for (const [name, value] of new URLSearchParams(location.search)) if (!["w", "kind", "after", "refresh"].includes(name)) (asked[name] ||= []).push(value);
  const scripts = Promise.all([loadScript(box.dataset.graphology), loadScript(box.dataset.sigma)]);
  scripts.then(() => load(() => asked), (problem) => say(problem.message)).then(() => {
    const only = asked.name?.length === 1 ? asked.name[0] : null;
    if (only !== null && !isNarrow() && graph?.hasNode(only)) { select(only); makeRoom(); }
  });
})();
