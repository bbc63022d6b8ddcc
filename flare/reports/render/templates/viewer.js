// Scrolls through both label maps of a case. A byte of the volume is a voxel: the number
// of its part in the reference, and 16 times that of the prediction; it runs from the
// feet to the head, from front to back, and from the patient's right to the left. A part
// has the numbers of the organs that it belongs to: several, where regions overlap.
(async () => {
  const data = document.getElementById("volume");
  if (!data || !("DecompressionStream" in window)) return;
  const { shape, spacing, first, sizes, worst, names, colours, parts, voxels } =
    JSON.parse(data.textContent);
  const lacks = parts.map((organs) =>
    parts.map((others) => organs.filter((organ) => !others.includes(organ))));
  const packed = Uint8Array.from(atob(voxels), (char) => char.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const volume = new Uint8Array(await new Response(stream).arrayBuffer());
  const steps = [shape[1] * shape[2], shape[2], 1];
  const planes = [[0, 1, 2], [1, 0, 2], [2, 0, 1]]; // across, down, right
  const letters = ["RLAP", "RLSI", "APSI"];
  const stage = document.querySelector(".stage");
  const figures = [...stage.querySelectorAll("figure")];
  const pictures = figures.map((figure) => figure.querySelector("svg"));
  const captions = figures.map((figure) => figure.lastElementChild.textContent);
  const labels = figures.map((figure) => figure.firstElementChild.ariaLabel);
  const radios = [...stage.querySelectorAll("[type=radio]")];
  const slider = stage.querySelector("[type=range]");
  const boxes = [...stage.querySelectorAll("[type=checkbox]")];
  const shows = (name) => document.getElementById(`show-${name}`).checked;
  const canvas = document.createElement("canvas");
  const paint = canvas.getContext("2d");
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(`--${name}`).trim();
  const homes = worst.map((place, axis) => place - first[axis]);
  const places = [...homes];
  let plane = 0;

  const pattern = (name, draw) => {
    const tile = document.createElement("canvas");
    tile.width = tile.height = 6;
    const own = tile.getContext("2d");
    own.fillStyle = own.strokeStyle = colour(name);
    own.globalAlpha = 0.35;
    own.fillRect(0, 0, 6, 6);
    own.globalAlpha = 1;
    draw(own);
    return paint.createPattern(tile, "repeat");
  };
  const missed = pattern("film-missed", (own) => {
    own.lineWidth = 1.5;
    for (const x of [-6, 0, 6]) {
      own.moveTo(x - 1, 7);
      own.lineTo(x + 7, -1);
    }
    own.stroke();
  });
  const added = pattern("film-added", (own) => own.fillRect(2, 2, 2.5, 2.5));

  // The part at a row and column of a label map; 0 outside, the head is on top.
  const reader = (rows, columns, shift) => {
    const [across, down, right] = planes[plane];
    const base = places[across] * steps[across];
    return (row, column) => {
      if (row < 0 || column < 0 || row >= rows || column >= columns) return 0;
      const up = down === 0 ? rows - 1 - row : row;
      return volume[base + up * steps[down] + column * steps[right]] >> shift & 15;
    };
  };

  // The edges between parts, in runs as long as they go, by what `owners` says of both.
  const edges = (part, owners, rows, columns, width, height) => {
    const paths = new Map();
    const walk = (lines, length, pair, put) => {
      for (let line = 0; line <= lines; line++) {
        let start = 0;
        let own = 0;
        for (let place = 0; place <= length; place++) {
          const [a, b] = place < length ? pair(line, place) : [0, 0];
          const next = a === b ? 0 : a << 4 | b;
          if (next === own) continue;
          for (const owner of own ? owners(own >> 4, own & 15) : []) {
            if (!paths.has(owner)) paths.set(owner, new Path2D());
            put(paths.get(owner), line, start, place);
          }
          start = place;
          own = next;
        }
      }
    };
    walk(rows, columns, (r, c) => [part(r - 1, c), part(r, c)], (path, line, a, b) => {
      path.moveTo(a * width, line * height);
      path.lineTo(b * width, line * height);
    });
    walk(columns, rows, (c, r) => [part(r, c - 1), part(r, c)], (path, line, a, b) => {
      path.moveTo(line * width, a * height);
      path.lineTo(line * width, b * height);
    });
    return paths;
  };

  // Draws the slice that is chosen; what is wrong in it, in words.
  const draw = () => {
    const [across, down, right] = planes[plane];
    const [rows, columns] = [shape[down], shape[right]];
    const longest = Math.max(...shape.map((size, axis) => size * spacing[axis]));
    const scale = Math.min(900 / longest, 8 / Math.min(...spacing));
    const [width, height] = [spacing[right] * scale, spacing[down] * scale];
    canvas.width = Math.ceil(columns * width);
    canvas.height = Math.ceil(rows * height);
    const reference = reader(rows, columns, 0);
    const prediction = reader(rows, columns, 4);
    const counts = [0, 0];
    const hearts = names.map(() => [0, 0, 0]); // voxels, and sums of columns and rows
    paint.fillStyle = colour("film");
    paint.fillRect(0, 0, canvas.width, canvas.height);
    const pairs = [[reference, prediction, missed], [prediction, reference, added]];
    pairs.forEach(([part, other, fill], number) => {
      const path = new Path2D();
      for (let row = 0; row < rows; row++) {
        for (let column = 0; column < columns; column++) {
          const own = part(row, column);
          if (!own) continue;
          for (const organ of parts[own]) {
            const heart = hearts[organ];
            [1, column + 0.5, row + 0.5].forEach((place, n) => heart[n] += place);
          }
          if (lacks[own][other(row, column)].length) {
            path.rect(column * width, row * height, width, height);
            counts[number]++;
          }
        }
      }
      paint.fillStyle = fill;
      if (shows("errors")) paint.fill(path);
    });
    paint.lineWidth = 2;
    if (shows("prediction")) {
      paint.setLineDash([6, 4]);
      paint.strokeStyle = colour("outline");
      const all = () => [0];
      for (const path of edges(prediction, all, rows, columns, width, height).values()) {
        paint.stroke(path);
      }
      paint.setLineDash([]);
    }
    if (shows("reference")) {
      const both = (a, b) => [...lacks[a][b], ...lacks[b][a]];
      for (const [organ, path] of edges(reference, both, rows, columns, width, height)) {
        paint.strokeStyle = colour(colours[organ]);
        paint.stroke(path);
      }
    }
    const taken = [];
    const write = (text, ink, x, y) => {
      const half = paint.measureText(text).width / 2;
      if (taken.some(([a, b, c]) => Math.abs(a - x) < b + half && Math.abs(c - y) < 20)) return;
      taken.push([x, half, y]);
      paint.strokeStyle = colour("film");
      paint.strokeText(text, x, y);
      paint.fillStyle = ink;
      paint.fillText(text, x, y);
    };
    paint.font = "600 18px sans-serif";
    paint.textAlign = "center";
    paint.textBaseline = "middle";
    paint.lineWidth = 4;
    const [middle, half] = [canvas.width / 2, canvas.height / 2];
    [[14, half], [canvas.width - 14, half], [middle, 14], [middle, canvas.height - 14]]
      .forEach(([x, y], number) => write(letters[plane][number], colour("letters"), x, y));
    if (shows("names")) {
      hearts.map((heart, organ) => [...heart, organ]).filter(([size]) => size)
        .sort(([a], [b]) => b - a)
        .forEach(([size, x, y, organ]) => {
          const reach = Math.sqrt(size * width * height) / 2;
          const above = reach < 40 ? reach + 14 : 0; // of a small one, not upon it
          write(names[organ], colour(colours[organ]), x / size * width, y / size * height - above);
        });
    }
    return `: ${counts[0]} voxels missed, ${counts[1]} added`;
  };

  const show = () => {
    const across = planes[plane][0];
    const isHome = places[across] === homes[across];
    const counts = isHome ? "" : draw();
    const text = `slice ${places[across] + first[across] + 1} of ${sizes[across]}`;
    const caption = isHome ? captions[plane] : `${radios[plane].value}, ${text}${counts}`;
    const [box, said] = figures[plane].children;
    box.replaceChildren(isHome ? pictures[plane] : canvas);
    said.textContent = caption;
    box.ariaLabel = isHome ? labels[plane] : caption;
    slider.max = shape[across] - 1;
    slider.value = places[across];
    slider.setAttribute("aria-valuetext", text);
  };
  const go = (place) => {
    const across = planes[plane][0];
    places[across] = Math.max(0, Math.min(shape[across] - 1, place));
    show();
  };
  slider.addEventListener("input", () => go(Number(slider.value)));
  figures.forEach((figure, number) => {
    figure.addEventListener("click", () => {
      radios[number].click();
      slider.focus();
    });
    figure.addEventListener("wheel", (event) => {
      if (number !== plane || document.activeElement !== slider) return;
      event.preventDefault();
      go(places[planes[plane][0]] - Math.sign(event.deltaY));
    }, { passive: false });
  });
  radios.forEach((radio, number) => radio.addEventListener("change", () => {
    const [box, said] = figures[plane].children;
    box.replaceChildren(pictures[plane]);
    [box.ariaLabel, said.textContent] = [labels[plane], captions[plane]];
    plane = number;
    show();
  }));
  boxes.forEach((box) => box.addEventListener("change", show));
  document.querySelectorAll("a[data-place]").forEach((link) => link.addEventListener("click", () => {
    link.dataset.place.split(" ").forEach((place, axis) => places[axis] = place - first[axis]);
    show();
  }));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
  slider.parentElement.hidden = false;
  document.getElementById("no-viewer").textContent =
    "Click a picture, then scroll through its slices by the wheel or the arrow keys."
    + (document.getElementById("show-ct") ? " The CT is of these slices alone." : "");
  show();
})();
