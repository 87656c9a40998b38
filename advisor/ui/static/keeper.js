// The page's half of the plan keeper (bridge.py): address, storage, links, liveness, busy bar, names for assistive technology.

const LAST = "advisor.plan";
const NAMED = "advisor.plans";
const PAST = "advisor.undo";
const LANG = "advisor.lang";
const read = (store, key, otherwise) => {
  try {
    return JSON.parse(globalThis[store].getItem(key)) ?? otherwise;
  } catch {
    return otherwise; // no storage, or not ours
  }
};
const write = (store, key, value) => {
  try {
    globalThis[store].setItem(key, JSON.stringify(value));
  } catch {
    // a private window or a full store: the address still carries the plan
  }
};
const text = (value) => (typeof value === "string" ? value : "");
const inAddress = () => new URLSearchParams(location.hash.slice(1)).get("p") ?? new URLSearchParams(location.search).get("p") ?? "";

function render({ model, el }) {
  el.classList.add("advisor-keeper");
  el.style.display = "none";
  const ours = !!document.body.dataset.voila; // an address bar of ours: in JupyterLab it is JupyterLab's
  const undo = [];
  const on = (target, name, handler) => {
    target.addEventListener(name, handler);
    undo.push(() => target.removeEventListener(name, handler));
  };
  const follow = (name, handler) => {
    model.on(name, handler);
    undo.push(() => model.off(name, handler));
  };

  // -- the look, where the page does not bring it -----------------------------------------------------------------------------
  if (!document.getElementById("advisor-style")) {
    const style = document.createElement("style");
    style.id = "advisor-style";
    document.head.append(style);
    const receive = (message) => {
      if (message?.kind !== "style") return;
      style.textContent = message.text;
      model.off("msg:custom", receive);
    };
    model.on("msg:custom", receive);
    model.send({ kind: "style" });
  }

  // -- the plan -------------------------------------------------------------------------------------------------------------
  const links = () => {
    const token = model.get("token");
    if (!token) return;
    for (const link of document.querySelectorAll("a[data-advisor-nav]")) {
      if (link.hash !== "#p=" + token) link.hash = "p=" + token;
    }
  };
  const push = () => {
    const token = model.get("token");
    if (!token) return;
    write("localStorage", LAST, token);
    if (ours) {
      const url = new URL(location);
      url.searchParams.delete("p");
      url.hash = "p=" + token;
      if (url.href !== location.href) history.replaceState(history.state, "", url);
    }
    links();
  };
  const keepPast = () => write("sessionStorage", PAST, { history: model.get("history"), position: model.get("position") });
  const keepNamed = () => write("localStorage", NAMED, model.get("named"));
  let count = 0;
  const offer = (message) => {
    model.set("offered", { ...message, count: ++count });
    model.save_changes();
  };
  follow("change:token", push);
  follow("change:history", keepPast);
  follow("change:position", keepPast);
  follow("change:named", () => model.get("ready") && keepNamed());
  if (ours) on(window, "hashchange", () => inAddress() && inAddress() !== model.get("token") && offer({ token: inAddress() }));
  on(window, "storage", (event) => event.key === NAMED && offer({ named: read("localStorage", NAMED, {}) }));

  if (!model.get("ready")) {
    const past = read("sessionStorage", PAST, {}) ?? {};
    const token = (ours && inAddress()) || text(read("localStorage", LAST, ""));
    model.set("ready", true);
    if (!token) push();
    const lang = text(read("localStorage", LANG, "")) || (navigator.language ?? "");
    offer({ token, history: past.history ?? [], position: past.position ?? 0, named: read("localStorage", NAMED, {}) ?? {}, lang });
  } else push();
  follow("change:lang", () => write("localStorage", LANG, model.get("lang")));

  follow("msg:custom", (message, buffers) => {
    if (message?.kind !== "file") return;
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([buffers[0]], { type: message.type }));
    link.download = message.name;
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  });
  follow("msg:custom", async (message) => {
    if (message?.kind !== "copy") return;
    const url = new URL(location);
    url.hash = "p=" + model.get("token");
    let done = false;
    try {
      await navigator.clipboard.writeText(url.href);
      done = true;
    } catch {
      const area = document.createElement("textarea"); // plain http has no clipboard API
      area.value = url.href;
      document.body.append(area);
      area.select();
      done = document.execCommand("copy");
      area.remove();
    }
    if (done) toast(model.get("labels").copied);
  });
  const toast = (words) => {
    const note = document.createElement("div");
    note.className = "advisor-toast";
    note.setAttribute("role", "status");
    document.body.append(note);
    note.textContent = words;
    setTimeout(() => note.remove(), 2500);
  };

  // -- is anybody there? ------------------------------------------------------------------------------------------------------
  // A dead, culled or restarted kernel otherwise leaves a page whose controls move and change nothing.
  let waiting = 0;
  let banner = null;
  let touched = Date.now();
  const restful = 30 * 60 * 1000; // nobody has touched the page for this long: let the server take the kernel back
  const lost = () => {
    if (banner) return;
    banner = document.createElement("div");
    banner.className = "advisor-lost";
    banner.setAttribute("role", "alert");
    const words = document.createElement("span");
    const button = document.createElement("button");
    button.type = "button";
    button.onclick = () => location.reload();
    banner.append(words, button);
    document.body.prepend(banner);
    words.textContent = model.get("labels").lost;
    button.textContent = model.get("labels").reload;
  };
  const ping = () => {
    if (document.hidden || Date.now() - touched > restful) return;
    if (waiting >= 2) lost();
    waiting++;
    try {
      model.send({ kind: "ping" });
    } catch {
      lost(); // the comm is closed
    }
  };
  follow("msg:custom", (message) => {
    if (message?.kind !== "pong") return;
    waiting = 0;
    banner?.remove();
    banner = null;
  });
  if (ours) {
    const every = setInterval(ping, model.get("ping_ms"));
    undo.push(() => clearInterval(every));
    for (const name of ["pointerdown", "keydown"]) {
      on(document, name, () => {
        const slept = Date.now() - touched > restful;
        touched = Date.now();
        if (slept) ping();
      });
    }
    on(document, "visibilitychange", () => document.hidden || ping());
  }

  // -- work going on ----------------------------------------------------------------------------------------------------------
  let bar = null;
  let soon = null;
  const busy = () => {
    const words = model.get("busy_text");
    clearTimeout(soon);
    if (!words) {
      bar?.remove();
      bar = null;
      return;
    }
    soon = setTimeout(() => {
      if (!bar) {
        bar = document.createElement("div");
        bar.className = "advisor-busy";
        bar.setAttribute("role", "status");
        document.body.append(bar);
      }
      bar.textContent = words;
    }, 500);
  };
  follow("change:busy_text", busy);
  undo.push(() => bar?.remove());

  // -- names for assistive technology -------------------------------------------------------------------------------------------
  // ipywidgets leaves slider handles, toggle groups and read-outs without a name.
  const set = (node, name, value) => node && node.getAttribute(name) !== value && node.setAttribute(name, value);
  const labelOf = (box) => box.querySelector(":scope > .widget-label")?.innerText?.trim() || box.getAttribute("data-advisor-label");
  const describe = () => {
    const lang = model.get("lang");
    if (lang && ours) set(document.documentElement, "lang", lang);
    for (const root of document.querySelectorAll(".advisor-root")) {
      if (lang && !ours) set(root, "lang", lang);
      for (const box of root.querySelectorAll(".widget-slider, .widget-toggle-buttons")) {
        const label = labelOf(box);
        if (!label) continue;
        for (const handle of box.querySelectorAll(".noUi-handle")) set(handle, "aria-label", label);
        for (const shown of box.querySelectorAll(".widget-readout")) {
          set(shown, "role", "textbox");
          set(shown, "aria-label", label);
        }
        const group = box.querySelector(".widget-toggle-button")?.parentElement;
        if (group) {
          set(group, "role", "group");
          set(group, "aria-label", label);
        }
      }
      for (const button of root.querySelectorAll(".widget-toggle-button")) {
        set(button, "aria-pressed", String(button.classList.contains("mod-active")));
      }
      for (const button of root.querySelectorAll("button.jupyter-button[title]")) {
        if (button.innerText.trim().length < 2) set(button, "aria-label", button.title);
      }
    }
    links();
  };
  let planned = 0;
  const observer = new MutationObserver(() => {
    planned ||= setTimeout(() => {
      planned = 0;
      describe();
    }, 60);
  });
  observer.observe(document.body, { childList: true, subtree: true, characterData: true, attributes: true, attributeFilter: ["class", "title"] });
  follow("change:lang", describe);
  describe();

  return () => {
    observer.disconnect();
    clearTimeout(planned);
    clearTimeout(soon);
    for (const step of undo) step();
  };
}
export default { render };
