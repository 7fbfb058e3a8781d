'use strict';
(async () => {
  const source = document.getElementById('map-data');
  if (!source || !window.DecompressionStream) return;
  const mapData = JSON.parse(source.textContent);
  const byId = (id) => document.getElementById(id);
  const [drawing, slider, play, speed, layerChoice, only, names, status, legend] =
    ['map-drawing', 'time', 'play', 'speed', 'layer', 'only', 'names', 'status', 'map-lines'].map(byId);

  async function unpack(text, Kind) {
    const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'));
    return new Kind(await new Response(stream).arrayBuffer());
  }

  function element(parent, tag, attributes, text) {
    const made = document.createElementNS('http://www.w3.org/2000/svg', tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    if (text !== undefined) made.textContent = text;
    parent.append(made);
    return made;
  }

  function option(select, value, text) {
    const made = document.createElement('option');
    made.value = value;
    made.textContent = text;
    select.append(made);
  }

  const { frames, step, nodes } = mapData;
  const unknown = 65535;
  // Of each node its places east, then south, each as the difference to the one before.
  async function unpackPlaces(packed) {
    const found = await unpack(packed, Uint16Array);
    for (let row = 0; row < 2 * nodes.length; row++) {
      for (let i = row * frames + 1; i < (row + 1) * frames; i++) found[i] += found[i - 1];
    }
    return found;
  }
  const places = await unpackPlaces(mapData.places);
  // Where nodes last reported that they are, if any does.
  const reported = mapData.reported && await unpackPlaces(mapData.reported);
  const layers = await Promise.all(mapData.layers.map(async (layer) => ({
    ...layer, pairs: await unpack(layer.pairs, Uint16Array), values: await unpack(layer.values, Uint8Array), classOf: classes(layer),
  })));
  const extent = { left: unknown, top: unknown, right: 0, bottom: 0 };
  for (const some of reported ? [places, reported] : [places]) {
    for (let node = 0; node < nodes.length; node++) {
      for (let i = 0; i < frames; i++) {
        const x = some[2 * node * frames + i], y = some[(2 * node + 1) * frames + i];
        if (x === unknown) continue;
        extent.left = Math.min(extent.left, x); extent.right = Math.max(extent.right, x);
        extent.top = Math.min(extent.top, y); extent.bottom = Math.max(extent.bottom, y);
      }
    }
  }

  for (const { x, y } of mapData.jammers) {
    extent.left = Math.min(extent.left, x); extent.right = Math.max(extent.right, x);
    extent.top = Math.min(extent.top, y); extent.bottom = Math.max(extent.bottom, y);
  }

  // The class of each code of a layer, as in mapdata.py; -1 for no line.
  function classes(layer) {
    const found = new Int8Array(256);
    for (let code = 1; code < 256; code++) {
      const value = layer.kind === 'sinr' ? -30 + (code - 1) / 2 : code - 1;
      found[code] = layer.bounds.filter((bound) => value >= bound).length;
    }
    found[0] = -1;
    if (layer.kind === 'sinr') found[255] = layer.bounds.length + 1;
    return found;
  }

  const shapes = [
    'M-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0Z', 'M-4.5-4.5h9v9h-9Z', 'M0-6.5L6.5 0L0 6.5L-6.5 0Z', 'M0-6.5L5.8 4.5H-5.8Z',
    'M0-6L5.7-1.9L3.5 4.9H-3.5L-5.7-1.9Z', 'M-6-2h4v-4h4v4h4v4h-4v4h-4v-4h-4Z',
  ];
  const graticule = element(drawing, 'g', {});
  const linesLayer = element(drawing, 'g', {});
  const trails = element(drawing, 'path', { class: 'trail' });
  const rings = element(drawing, 'path', { class: 'reported' });
  const nodesLayer = element(drawing, 'g', {});
  const scaleBar = element(drawing, 'path', { class: 'scale' });
  const scaleText = element(drawing, 'text', {});
  const groups = [...new Set(mapData.groups)];
  const dots = nodes.map((name, i) => {
    const group = groups.indexOf(mapData.groups[i]);
    const dot = element(nodesLayer, 'g', { class: 'dot-' + i });
    element(dot, 'title', {}, name);
    element(dot, 'path', { class: 'node s' + (group % 8), d: shapes[group % shapes.length] });
    element(dot, 'text', { class: 'name', x: 9, y: 4 }, name.length > 16 ? name.slice(0, 8) + '\u2026' + name.slice(-7) : name);
    return dot;
  });
  const jammers = mapData.jammers.map(({ name, about }) => {
    const jammer = element(nodesLayer, 'g', {});
    element(jammer, 'title', {}, about);
    element(jammer, 'path', { class: 'jammer', d: 'M-6-6L6 6M6-6L-6 6' });
    element(jammer, 'text', { class: 'name', x: 9, y: 4 }, name);
    return jammer;
  });
  let paths = [];
  let frame = 0;
  let playing = 0;
  let size = null;

  function fit() {
    const width = Math.max(drawing.clientWidth, 200);
    const across = Math.max(extent.right - extent.left, 1), down = Math.max(extent.bottom - extent.top, 1);
    const margin = 28, label = Math.min(90, width / 6);
    const height = Math.round(Math.min(Math.max((width - 2 * margin - label) * down / across + 2 * margin + 14, 220), Math.min(640, width * 1.1)));
    const scale = Math.min((width - 2 * margin - label) / across, (height - 2 * margin - 14) / down);
    const left = margin + (width - 2 * margin - label - across * scale) / 2, top = margin + (height - 2 * margin - 14 - down * scale) / 2;
    size = { width, height, scale, left, top, x: (x) => left + (x - extent.left) * scale, y: (y) => top + (y - extent.top) * scale };
    drawing.setAttribute('viewBox', `0 0 ${width} ${height}`);
    drawing.setAttribute('height', height);
    drawScale();
    drawGraticule();
    draw();
  }

  function drawScale() {
    if (!mapData.metres) return;
    const metresOfPixel = mapData.metres / size.scale;
    const most = metresOfPixel * size.width / 4;
    const ten = 10 ** Math.floor(Math.log10(most));
    const round = [5, 2, 1].map((f) => f * ten).find((m) => m <= most);
    const y = size.height - 12;
    scaleBar.setAttribute('d', `M12 ${y - 4}v4h${(round / metresOfPixel).toFixed(1)}v-4`);
    scaleText.setAttribute('x', 18 + round / metresOfPixel);
    scaleText.setAttribute('y', y);
    scaleText.textContent = (round >= 1000 ? round / 1000 + ' km' : round + ' m') + ', north is up';
  }

  const degrees = (value, digits, positive, negative) => {
    const turned = (((value + 180) % 360) + 360) % 360 - 180;
    return `${Math.abs(turned).toFixed(digits)}\u00b0\u00a0${turned >= 0 ? positive : negative}`;
  };

  // Lines of longitude and latitude, as in mapdata.py.
  function drawGraticule() {
    graticule.replaceChildren();
    if (!mapData.ground) return;
    const { width, height, scale, left, top } = size;
    const { longitude, latitude, east, south } = mapData.ground;
    const west = longitude + (extent.left - left / scale) * east, north = latitude - (extent.top - top / scale) * south;
    const across = east / scale, down = south / scale;
    const least = across * width / Math.max(5, width / 160);
    const ten = 10 ** Math.floor(Math.log10(least));
    const step = [1, 2, 5, 10].map((f) => f * ten).find((s) => s >= least * 0.999);
    const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
    for (let i = Math.ceil(west / step); i * step <= west + across * width; i++) {
      const x = (i * step - west) / across;
      element(graticule, 'path', { class: 'graticule', d: `M${x.toFixed(1)} 0V${height}` });
      if (x > 60 && x < width - 60) element(graticule, 'text', { class: 'degrees', x: x + 3, y: 11 }, degrees(i * step, digits, 'E', 'W'));
    }
    for (let i = Math.ceil((north - down * height) / step); i * step <= north; i++) {
      const y = (north - i * step) / down;
      element(graticule, 'path', { class: 'graticule', d: `M0 ${y.toFixed(1)}H${width}` });
      if (y > 24 && y < height - 30) element(graticule, 'text', { class: 'degrees', x: 3, y: y - 3 }, degrees(i * step, digits, 'N', 'S'));
    }
  }

  const place = (node, at, of = places) => {
    const x = of[2 * node * frames + at];
    return x === unknown ? null : [size.x(x), size.y(of[(2 * node + 1) * frames + at])];
  };

  function draw() {
    const now = nodes.map((_, node) => place(node, frame));
    now.forEach((at, node) => {
      dots[node].setAttribute('visibility', at ? 'visible' : 'hidden');
      if (at) dots[node].setAttribute('transform', `translate(${at[0].toFixed(1)} ${at[1].toFixed(1)})`);
    });
    mapData.jammers.forEach((jammer, i) => {
      const on = frame * step >= jammer.from && frame * step < jammer.to;
      jammers[i].setAttribute('visibility', on ? 'visible' : 'hidden');
      jammers[i].setAttribute('transform', `translate(${size.x(jammer.x).toFixed(1)} ${size.y(jammer.y).toFixed(1)})`);
    });
    drawTrails();
    drawReported(now);
    const counts = drawLines(now);
    const seconds = frame * step;
    slider.value = frame;
    slider.setAttribute('aria-valuetext', `${seconds} s after T0`);
    const total = counts.reduce((sum, n) => sum + n, 0);
    const clock = new Date(mapData.start + seconds * 1000).toISOString().slice(11, 19);
    const lines = layers.length ? ` \u00b7 ${total} ${total === 1 ? 'line' : 'lines'}` : '';
    const band = mapData.bands.find(([from, to]) => seconds >= from && seconds <= to);
    const mark = mapData.marks.filter(([at]) => at <= seconds && seconds - at < 10).pop();
    status.textContent = `${seconds} s \u00b7 ${clock} UTC${lines}` + (mark ? ` \u00b7 changed by hand: ${mark[1]}` : '') + (band ? ` \u00b7 ${band[2]}` : '');
  }

  function drawTrails() {
    let d = '';
    if (mapData.metres && nodes.length <= 60) {
      const first = Math.max(0, frame - Math.max(Math.round(60 / step), 5));
      for (let node = 0; node < nodes.length; node++) {
        let last = '';
        for (let i = first; i <= frame; i++) {
          const at = place(node, i);
          if (!at) continue;
          const point = `${at[0].toFixed(1)} ${at[1].toFixed(1)}`;
          if (point !== last) d += (last ? 'L' : 'M') + point;
          last = point;
        }
      }
    }
    trails.setAttribute('d', d);
  }

  // Rings at reported places, as in mapdata.py, with lines to the true ones.
  function drawReported(now) {
    if (!reported) return;
    let d = '';
    now.forEach((at, node) => {
      const said = place(node, frame, reported);
      if (!at || !said) return;
      const [x, y] = said.map((value) => value.toFixed(1));
      d += `M${(said[0] - 3).toFixed(1)} ${y}a3 3 0 1 0 6 0a3 3 0 1 0-6 0ZM${x} ${y}L${at[0].toFixed(1)} ${at[1].toFixed(1)}`;
    });
    rings.setAttribute('d', d);
  }

  function drawLines(now) {
    const layer = layers[layerChoice.value];
    if (!layer) return [];
    const ends = paths.map(() => '');
    const counts = paths.map(() => 0);
    const wanted = only.value === '' ? -1 : Number(only.value);
    for (let pair = 0; pair < layer.pairs.length / 2; pair++) {
      const c = layer.classOf[layer.values[pair * frames + frame]];
      if (c < 0) continue;
      const a = layer.pairs[2 * pair], b = layer.pairs[2 * pair + 1];
      if (wanted >= 0 && a !== wanted && b !== wanted) continue;
      counts[c]++;
      if (now[a] && now[b]) ends[c] += `M${now[a][0].toFixed(0)} ${now[a][1].toFixed(0)}L${now[b][0].toFixed(0)} ${now[b][1].toFixed(0)}`;
    }
    paths.forEach(({ line, count }, c) => { line.setAttribute('d', ends[c]); count.textContent = counts[c]; });
    return counts;
  }

  function chooseLayer() {
    linesLayer.replaceChildren();
    legend.replaceChildren();
    const layer = layers[layerChoice.value];
    paths = (layer ? mapData.classes[layer.kind] : []).filter((name) => name).map((name, c) => {
      const item = document.createElement('li');
      const swatch = element(item, 'svg', { class: 'swatch', width: 28, height: 10, 'aria-hidden': 'true' });
      element(swatch, 'path', { class: 'link l' + c, d: 'M0 5H28' });
      const count = document.createElement('b');
      item.append(name + ': ', count);
      legend.append(item);
      return { line: element(linesLayer, 'path', { class: 'link l' + c }), count };
    });
  }

  function show(wanted) {
    frame = Math.min(Math.max(Math.round(wanted), 0), frames - 1);
    draw();
  }

  function stop() {
    cancelAnimationFrame(playing);
    playing = 0;
    play.setAttribute('aria-pressed', 'false');
    play.textContent = '\u25b6 Play';
  }

  function start() {
    let position = frame >= frames - 1 ? 0 : frame;
    let before = performance.now();
    play.setAttribute('aria-pressed', 'true');
    play.textContent = '\u275a\u275a Pause';
    const tick = (now) => {
      position += (now - before) / 1000 * Number(speed.value) / step;
      before = now;
      if (Math.floor(position) !== frame) show(Math.floor(position));
      if (frame >= frames - 1) stop();
      else playing = requestAnimationFrame(tick);
    };
    playing = requestAnimationFrame(tick);
  }

  const toggle = () => (playing ? stop() : start());
  play.addEventListener('click', toggle);
  slider.addEventListener('input', () => { stop(); show(Number(slider.value)); });
  slider.addEventListener('keydown', (event) => { if (event.key === ' ') { event.preventDefault(); toggle(); } });
  layerChoice.addEventListener('change', () => { chooseLayer(); draw(); });
  only.addEventListener('change', draw);
  names.addEventListener('change', () => dots.forEach((dot) => dot.lastChild.setAttribute('visibility', names.checked ? 'inherit' : 'hidden')));

  const speeds = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000];
  speeds.forEach((s) => option(speed, s, s + '\u00d7'));
  speed.value = speeds.find((s) => frames * step / s <= 40) || 1000;
  layers.forEach((layer, i) => option(layerChoice, i, layer.kind === 'sinr' ? `SINR on ${layer.name}` : 'messages that arrived'));
  layerChoice.disabled = layers.length < 2;
  option(only, '', 'all nodes');
  nodes.forEach((name, i) => option(only, i, name));
  names.checked = nodes.length <= 30;
  chooseLayer();
  byId('map-drawing').closest('.map').classList.add('live');
  document.querySelector('.moving').hidden = false;
  names.dispatchEvent(new Event('change'));
  new ResizeObserver(fit).observe(drawing);
  fit();
})();
