// One chart: its shape is embedded once, afterwards only rows are pushed. See vega.py for the traits.

// The bundle is loaded once a page: from the page's own <script> where our server put one, else from the kernel.
const library = (model) => {
  if (globalThis.advisorVega) return Promise.resolve(globalThis.advisorVega);
  globalThis.advisorVegaLoading ??= fromPage().catch(() => fromKernel(model));
  return globalThis.advisorVegaLoading;
};
const fromPage = () =>
  new Promise((resolve, reject) => {
    const script = document.getElementById("advisor-vega");
    if (!script) return reject(new Error("no bundle on this page"));
    const done = () => (globalThis.advisorVega ? resolve(globalThis.advisorVega) : reject(new Error("bundle did not run")));
    if (script.dataset.state === "failed") return reject(new Error("bundle did not load"));
    script.addEventListener("load", done);
    script.addEventListener("error", () => reject(new Error("bundle did not load")));
  });
const fromKernel = (model) =>
  new Promise((resolve, reject) => {
    const answer = async (message, buffers) => {
      if (message?.kind !== "library") return;
      model.off("msg:custom", answer);
      const url = URL.createObjectURL(new Blob([buffers[0]], { type: "text/javascript" }));
      try {
        await import(url);
        resolve(globalThis.advisorVega);
      } catch (error) {
        reject(error);
      } finally {
        URL.revokeObjectURL(url);
      }
    };
    model.on("msg:custom", answer);
    model.send({ kind: "library" });
  });

const isDark = () => {
  const forced = document.documentElement.dataset.advisorTheme;
  if (forced) return forced === "dark";
  if (document.body.dataset.jpThemeLight) return document.body.dataset.jpThemeLight === "false";
  return matchMedia("(prefers-color-scheme: dark)").matches;
};

const download = (name, href) => {
  const link = document.createElement("a");
  link.href = href;
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
};
const cell = (value) => {
  const text = value === null || value === undefined ? "" : String(value);
  // a leading = + - @ would run as a formula in a spreadsheet
  const safe = typeof value === "string" && /^[=+\-@\t\r]/.test(text) ? "'" + text : text;
  return /[",\n\r]/.test(safe) ? '"' + safe.replaceAll('"', '""') + '"' : safe;
};
const csv = (datasets) => {
  const parts = [];
  for (const rows of Object.values(datasets)) {
    if (!rows.length) continue;
    const names = [...new Set(rows.flatMap((row) => Object.keys(row)))];
    parts.push([names.map(cell).join(","), ...rows.map((row) => names.map((name) => cell(row[name])).join(","))].join("\r\n"));
  }
  return "\ufeff" + parts.join("\r\n\r\n") + "\r\n"; // the mark makes Excel read it as UTF-8
};

function render({ model, el }) {
  el.classList.add("advisor-chart");
  const picture = document.createElement("div");
  picture.className = "advisor-chart-picture";
  picture.setAttribute("role", "img");
  const { menu, relabel } = makeMenu();
  el.append(menu, picture);

  let shown = 0; // width drawn
  let result = null;
  let shape = null;
  let kept = 0; // legend columns drawn
  let busy = false;
  let again = false;
  let gone = false;

  const room = () => Math.floor(picture.clientWidth);
  const describe = () => {
    picture.setAttribute("aria-label", model.get("description"));
    picture.dataset.revision = model.get("revision");
  };
  const fluid = (spec) => !["hconcat", "vconcat", "concat", "facet", "repeat"].some((key) => key in spec) && !("width" in spec);

  // Vega does not wrap legends: fewer columns where there is less room
  const columns = () => (room() >= 640 ? 0 : Math.max(1, Math.floor(room() / 130)));

  const embed = async (spec, datasets, key, dark) => {
    const lib = await library(model);
    const { config, swap } = model.get("themes")[dark ? "dark" : "light"] ?? {};
    let text = JSON.stringify(spec);
    for (const [from, to] of Object.entries(swap ?? {})) text = text.replaceAll(`"${from}"`, `"${to}"`);
    const full = JSON.parse(text);
    full.datasets = { ...(full.datasets ?? {}), ...structuredClone(datasets) };
    if (fluid(spec)) {
      shown = room();
      full.width = shown;
      full.autosize = { type: "fit-x", contains: "padding" };
    }
    const host = document.createElement("div");
    host.setAttribute("aria-hidden", "true"); // the sentence on the picture says it all
    host.style.cssText = "position:absolute;visibility:hidden;left:0;top:0";
    picture.append(host);
    let next;
    try {
      next = await lib.vegaEmbed(host, full, {
        actions: false,
        renderer: "svg",
        mode: "vega-lite",
        config: { ...config, legend: { ...config?.legend, ...(columns() && { columns: columns() }) } },
        tooltip: { theme: dark ? "dark" : "light", disableDefaultStyle: false },
      });
    } catch (error) {
      host.remove();
      throw error;
    }
    if (gone) return next.finalize();
    next.view.cleanThreshold = 100; // Vega keeps 10,000 replaced marks of each kind before it lets them go
    host.style.cssText = "";
    result?.finalize();
    result = next;
    for (const child of [...picture.children]) if (child !== host) child.remove();
    shape = key;
  };

  const draw = async () => {
    if (busy) {
      again = true;
      return;
    }
    busy = true;
    try {
      const spec = model.get("spec");
      const datasets = model.get("datasets");
      if (Object.keys(spec).length && !(fluid(spec) && room() < 40)) {
        // a hidden tab has no width: the ResizeObserver draws it once it has
        const dark = isDark();
        const key = [dark, columns(), JSON.stringify(spec)].join();
        kept = columns();
        if (key !== shape) await embed(spec, datasets, key, dark);
        else {
          for (const [name, rows] of Object.entries(datasets)) result.view.data(name, structuredClone(rows));
          await result.view.runAsync();
        }
        describe();
        picture.dataset.drawn = model.get("revision");
      }
    } catch (error) {
      if (!gone) {
        picture.textContent = model.get("labels").failed ?? "This chart cannot be drawn.";
        picture.removeAttribute("data-drawn");
        shape = null;
        result?.finalize();
        result = null;
        console.warn("advisor chart:", error);
      }
    }
    busy = false;
    if (again && !gone) {
      again = false;
      draw();
    }
  };

  function makeMenu() {
    const menu = document.createElement("details");
    menu.className = "advisor-chart-menu";
    const summary = document.createElement("summary");
    summary.textContent = "⋯";
    const group = document.createElement("div");
    group.setAttribute("role", "group");
    const name = (ending) => (model.get("filename") || "chart") + "." + ending;
    const actions = {
      png: async () => download(name("png"), await result.view.toImageURL("png", 2)),
      svg: async () => save(name("svg"), await result.view.toSVG(), "image/svg+xml"),
      csv: async () => save(name("csv"), csv(model.get("datasets")), "text/csv;charset=utf-8"),
    };
    const save = (file, text, type) => {
      const url = URL.createObjectURL(new Blob([text], { type }));
      download(file, url);
      setTimeout(() => URL.revokeObjectURL(url), 10000);
    };
    const buttons = {};
    for (const [kind, action] of Object.entries(actions)) {
      const button = document.createElement("button");
      button.type = "button";
      button.dataset.kind = kind;
      button.onclick = async () => {
        if (result || kind === "csv") await action();
        menu.open = false;
        summary.focus();
      };
      buttons[kind] = button;
      group.append(button);
    }
    menu.append(summary, group);
    menu.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && menu.open) {
        menu.open = false;
        summary.focus();
        event.stopPropagation();
      }
    });
    menu.addEventListener("focusout", (event) => {
      if (!menu.contains(event.relatedTarget)) menu.open = false;
    });
    const relabel = () => {
      const labels = model.get("labels");
      summary.setAttribute("aria-label", labels.menu ?? "Save this chart");
      summary.title = labels.menu ?? "Save this chart";
      for (const kind of Object.keys(actions)) buttons[kind].textContent = labels[kind] ?? kind.toUpperCase();
    };
    relabel();
    return { menu, relabel };
  }

  // one message may change the shape, the rows and the sentence at once: they are drawn together
  let planned = false;
  const plan = () => {
    if (planned) return;
    planned = true;
    queueMicrotask(() => {
      planned = false;
      if (!gone) draw();
    });
  };
  const watched = ["spec", "datasets", "themes", "revision"];
  for (const name of watched) model.on(`change:${name}`, plan);
  model.on("change:description", describe);
  model.on("change:labels", relabel);
  const resize = new ResizeObserver(() => {
    const width = room();
    if (width < 40 || width === shown) return;
    if (!result || columns() !== kept) return plan();
    if (!fluid(model.get("spec"))) return;
    shown = width;
    result.view.width(width).runAsync();
  });
  resize.observe(picture);
  const looks = new MutationObserver(plan);
  looks.observe(document.documentElement, { attributes: true, attributeFilter: ["data-advisor-theme"] });
  looks.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light"] });
  const preference = matchMedia("(prefers-color-scheme: dark)");
  preference.addEventListener("change", plan);
  describe();
  draw();
  return () => {
    gone = true;
    resize.disconnect();
    looks.disconnect();
    preference.removeEventListener("change", plan);
    for (const name of watched) model.off(`change:${name}`, plan);
    model.off("change:description", describe);
    model.off("change:labels", relabel);
    result?.finalize();
    result = null;
  };
}
export default { render };
