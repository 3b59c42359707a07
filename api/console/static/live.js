"use strict";
// Pages follow changes by Server-Sent Events: `changed` on the body has their live parts asked for again.
// A browser's EventSource ends for good at an error status (503 while the store is away), so it is opened again here.
(() => {
  const state = document.getElementById("live-state");
  const address = document.body.dataset.changes;
  const first = 1000, longest = 30000;
  let source = null, wait = first, timer = 0, paused = false;

  const say = (name, text) => {
    if (state && state.dataset.state !== name) {
      state.dataset.state = name;
      state.querySelector("span").textContent = text;
    }
  };
  const changed = () => document.body.dispatchEvent(new CustomEvent("changed"));

  function open() {
    clearTimeout(timer);
    if (paused || document.hidden || source) return;
    source = new EventSource(address);
    source.onopen = () => { wait = first; say("live", "Live"); };
    source.addEventListener("change", changed);
    source.addEventListener("reset", changed);
    source.onerror = () => {
      say("waiting", "Reconnecting");
      if (source.readyState !== EventSource.CLOSED) return;
      close();
      changed();
      timer = setTimeout(open, wait);
      wait = Math.min(wait * 2, longest);
    };
  }
  function close() {
    clearTimeout(timer);
    if (source) source.close();
    source = null;
  }

  // On a phone the sections are one line that scrolls.
  const current = document.querySelector(".sections [aria-current]");
  if (current) current.scrollIntoView({ block: "nearest", inline: "center" });

  if (state && address) {
    state.hidden = false;
    state.addEventListener("click", () => {
      paused = !paused;
      state.setAttribute("aria-pressed", String(!paused));
      if (paused) { close(); say("paused", "Paused"); } else { open(); changed(); }
    });
    document.addEventListener("visibilitychange", () => {
      if (document.hidden) close(); else if (!paused) { open(); changed(); }
    });
    open();
  }

  // A search finds while it is typed; its address follows, to be shared and come back to.
  for (const search of document.querySelectorAll('form[role="search"][hx-get]')) {
    search.addEventListener("htmx:after:swap", () => {
      const given = [...new FormData(search)].filter(([, value]) => value !== "");
      history.replaceState(null, "", `${search.action}?${new URLSearchParams(given)}`);
    });
  }

  // A login is kept by browsers over HTTPS and on this machine only.
  const warning = document.getElementById("insecure");
  if (warning && !window.isSecureContext) warning.hidden = false;
})();
