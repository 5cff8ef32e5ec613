// A worker that lays a graph out: ForceAtlas2, then nodes that overlap are pushed apart.
"use strict";
self.module = { exports: {} };
importScripts("vendor/forceatlas2-iterate.js");
const iterate = self.module.exports;
const PER_NODE = 10, PER_EDGE = 3, GAP = 14;

// nodes: [x, y, radius] in pixels; edges: [source, target, weight] by place; size: [width, height].
self.onmessage = ({ data: { nodes, edges, size, settled } }) => {
  const linked = new Set(edges.flatMap(([source, target]) => [source, target]));
  const related = nodes.map((_, at) => at).filter((at) => linked.has(at));
  const loose = nodes.map((_, at) => at).filter((at) => !linked.has(at));
  const place = new Map(related.map((at, number) => [at, number]));
  const parts = related.map((at) => nodes[at]);
  const links = edges.map(([source, target, weight]) => [place.get(source), place.get(target), weight]);
  const shelf = measureShelf(loose.length, size);
  // The shelf takes its height from the drawing, so that both fill the window at a scale of one.
  const room = [size[0], Math.max(200, size[1] - shelf.height)];
  const scaled = related.length ? fit(spread(parts, links, settled), room) : [];
  pushApart(scaled, parts);
  const all = new Array(nodes.length);
  related.forEach((at, number) => { all[at] = scaled[number]; });
  shelve(loose, scaled, shelf, all);
  self.postMessage(all);
};

// Nodes without relations stand in rows below the others. A column has room for most labels.
const COLUMN = 210, ROW = 40;

function measureShelf(count, [width]) {
  const columns = Math.max(1, Math.min(count, Math.floor(width / COLUMN)));
  return { columns, step: width / columns, height: count ? ROW * (Math.ceil(count / columns) + 0.6) : 0 };
}

function shelve(loose, scaled, { columns, step }, all) {
  const xs = scaled.map(([x]) => x), ys = scaled.map(([, y]) => y);
  const left = xs.length ? Math.min(...xs) : 0;
  // Sigma's y points up, so the lowest row has the least y.
  const bottom = (ys.length ? Math.min(...ys) : 0) - 1.6 * ROW;
  loose.forEach((at, number) => {
    all[at] = [left + (number % columns) * step, bottom - ROW * Math.floor(number / columns)];
  });
}

function spread(nodes, edges, settled) {
  const matrix = new Float32Array(nodes.length * PER_NODE);
  const links = new Float32Array(edges.length * PER_EDGE);
  nodes.forEach(([x, y], at) => {
    matrix.set([x, y, 0, 0, 0, 0, 1, 1, 1, 0], at * PER_NODE);
  });
  edges.forEach(([source, target, weight], at) => {
    links.set([source * PER_NODE, target * PER_NODE, weight], at * PER_EDGE);
    matrix[source * PER_NODE + 6] += weight;
    matrix[target * PER_NODE + 6] += weight;
  });
  const settings = {
    linLogMode: false, outboundAttractionDistribution: false, adjustSizes: false, edgeWeightInfluence: 0.5,
    scalingRatio: 10, strongGravityMode: true, gravity: 0.08, slowDown: 1 + Math.log(nodes.length + 1),
    barnesHutOptimize: false, barnesHutTheta: 0.6,
  };
  const passes = settled ? 160 : 400;
  for (let pass = 0; pass < passes; pass++) iterate(settings, matrix, links);
  return nodes.map((_, at) => [matrix[at * PER_NODE], matrix[at * PER_NODE + 1]]);
}

// Scale the places to the window, so that radii and distances have the same unit; stretch them a little to fill it.
const MAX_STRETCH = 1.8;

function fit(places, [width, height]) {
  const xs = places.map(([x]) => x), ys = places.map(([, y]) => y);
  const left = Math.min(...xs), top = Math.min(...ys);
  const wide = Math.max(...xs) - left || 1, high = Math.max(...ys) - top || 1;
  const least = Math.min(width / wide, height / high);
  const across = Math.min(width / wide, least * MAX_STRETCH), down = Math.min(height / high, least * MAX_STRETCH);
  return places.map(([x, y]) => [(x - left) * across, (y - top) * down]);
}

function pushApart(places, nodes) {
  for (let pass = 0; pass < 60; pass++) {
    let moved = false;
    for (let a = 0; a < places.length; a++) {
      for (let b = a + 1; b < places.length; b++) {
        const dx = places[b][0] - places[a][0], dy = places[b][1] - places[a][1];
        const wanted = nodes[a][2] + nodes[b][2] + GAP, distance = Math.hypot(dx, dy);
        if (distance >= wanted) continue;
        moved = true;
        const angle = distance ? Math.atan2(dy, dx) : (a + b) % 6.28;
        const push = (wanted - distance) / 2;
        places[a][0] -= push * Math.cos(angle); places[a][1] -= push * Math.sin(angle);
        places[b][0] += push * Math.cos(angle); places[b][1] += push * Math.sin(angle);
      }
    }
    if (!moved) return;
  }
}
