"use strict";
// All that comes from robots.txt files, or servers, becomes text by textContent.
(() => {
  const table = document.getElementById("origins");
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  const columns = heads.map((head) => head.textContent);
  const isNumeric = (column) => heads[column].classList.contains("number");
  const status = document.getElementById("matching");
  const more = document.getElementById("more");
  const nothing = document.getElementById("nothing");
  const filterName = document.getElementById("filter-name");
  const filterAccess = document.getElementById("filter-access");
  const filterColumn = document.getElementById("filter-column");
  const sources = document.querySelectorAll("script.details");

  // Of thousands of rows, so many are laid out at first, and with each press on "more".
  const STEP = 100;
  // An origin: the values of its columns, and elements that are made when first shown.
  const values = JSON.parse(document.getElementById("rows").textContent);
  const origins = values.map((values, index) => ({ values, index, row: null, details: null }));
  let matching = origins;
  let limit = STEP;

  const counted = (number) => number.toLocaleString("en");

  function element(name, text, className) {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    if (className) made.className = className;
    return made;
  }

  // -- the table

  function show() {
    const rows = [];
    for (const origin of matching.slice(0, limit)) {
      origin.row ??= makeRow(origin);
      rows.push(origin.row);
      if (origin.details) rows.push(origin.details);
    }
    body.replaceChildren(...rows);
    const all = counted(origins.length);
    status.textContent = `${counted(matching.length)} of ${all}`;
    nothing.hidden = matching.length > 0 || origins.length === 0;
    const left = matching.length - limit;
    more.hidden = left <= 0;
    more.firstElementChild.textContent = `Show ${counted(Math.min(left, STEP))} more of ${counted(matching.length)}`;
  }

  function makeRow(origin) {
    const row = element("tr");
    row.id = `origin-${origin.index}`;
    const name = element("th");
    name.scope = "row";
    const button = element("button", undefined, "open");
    button.type = "button";
    button.setAttribute("aria-expanded", "false");
    button.append(element("bdi", origin.values[0]));
    button.addEventListener("click", () => toggle(origin));
    name.append(button);
    row.append(name, ...origin.values.slice(1).map((value, index) => makeCell(value, index + 1)));
    return row;
  }

  function makeCell(value, column) {
    const text = typeof value === "number" ? counted(value) : value ?? "\u2013";
    const cell = element("td", text, isNumeric(column) ? "number" : "text");
    cell.dataset.name = columns[column];
    if (columns[column] === "access") cell.classList.add(value);
    if (!value) cell.classList.add("nothing");
    return cell;
  }

  // -- sorting and filtering

  // 127.0.0.2 before 127.0.0.10.
  const { compare } = new Intl.Collator("en", { numeric: true });
  // As people look for it: without the scheme.
  const address = ({ values: [name] }) => name.slice(name.indexOf("://") + 3);
  const byAddress = (a, b) => compare(address(a), address(b));

  function comparison(column) {
    if (isNumeric(column)) return (a, b) => (a.values[column] ?? -1) - (b.values[column] ?? -1);
    if (column > 0) return (a, b) => compare(a.values[column], b.values[column]);
    return byAddress;
  }

  function sortBy(column) {
    const head = heads[column];
    // The first press shows what there is most of.
    const first = isNumeric(column) ? "descending" : "ascending";
    const second = isNumeric(column) ? "ascending" : "descending";
    const order = head.getAttribute("aria-sort") === first ? second : first;
    for (const each of heads) each.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", order);
    const compared = comparison(column);
    const sign = order === "ascending" ? 1 : -1;
    origins.sort((a, b) => sign * compared(a, b) || byAddress(a, b));
    filter();
  }

  function filter() {
    const part = filterName.value.trim().toLowerCase();
    const access = filterAccess.value;
    const column = columns.indexOf(filterColumn.value);
    matching = origins.filter(
      ({ values }) =>
        values[0].toLowerCase().includes(part) &&
        (!access || values[1] === access) &&
        (column < 0 || values[column] > 0)
    );
    limit = STEP;
    show();
  }

  function setFilters(access, column) {
    filterName.value = "";
    filterAccess.value = access;
    filterColumn.value = column;
    filter();
  }

  // To the origin that the address names, as the links above the table do.
  function follow() {
    const position = Number(location.hash.match(/^#origin-(\d+)$/)?.[1] ?? -1);
    const origin = origins.find(({ index }) => index === position);
    if (!origin) return;
    setFilters("", "");
    limit = Math.max(STEP, matching.indexOf(origin) + 1);
    show();
    const opener = origin.row.querySelector(".open");
    if (opener.getAttribute("aria-expanded") !== "true") toggle(origin);
    origin.row.scrollIntoView();
    opener.focus({ preventScroll: true });
  }

  // -- the details of an origin

  function toggle(origin) {
    const opener = origin.row.querySelector(".open");
    const open = opener.getAttribute("aria-expanded") !== "true";
    if (!origin.details) {
      origin.details = makeDetails(origin);
      origin.row.after(origin.details);
      opener.setAttribute("aria-controls", origin.details.id);
    }
    origin.details.hidden = !open;
    opener.setAttribute("aria-expanded", String(open));
  }

  function makeDetails(origin) {
    const known = JSON.parse(sources[origin.index].textContent);
    const id = `details-${origin.index}`;
    const row = element("tr", undefined, "details");
    row.id = id;
    const box = element("td");
    box.colSpan = heads.length;
    row.append(box);
    box.append(makeFacts(known.details));
    for (const reason of known.reasons) box.append(element("p", reason, "notice"));
    for (const note of known.notes) box.append(element("p", note, "notice"));
    if (known.refused.length) {
      addPart(box, "Refused URLs", makeRefused(known.refused, id));
      addLeftOut(box, known.refusedCount - known.refused.length, "more");
    }
    if (known.disagreements.length) {
      addPart(box, "Disagreements", makeDisagreements(known.disagreements));
      addLeftOut(box, known.disagreementCount - known.disagreements.length, "more");
    }
    if (known.lines) {
      addPart(box, "robots.txt", makeFile(known.lines, id));
      addLeftOut(box, known.more, "more lines");
    }
    if (known.events.length) {
      addPart(box, "History", makeTable(["when", "what", "took"], known.events));
      addLeftOut(box, known.eventCount - known.events.length, "earlier");
    }
    return row;
  }

  function addPart(box, title, part) {
    box.append(element("h3", title), part);
  }

  function addLeftOut(box, count, what) {
    if (count > 0) box.append(element("p", `${counted(count)} ${what}, not shown`, "faint"));
  }

  function makeFacts(facts) {
    const list = element("dl", undefined, "facts");
    for (const [name, value] of facts) list.append(element("dt", name), element("dd", value));
    return list;
  }

  function makeRefused(refused, id) {
    const list = element("ul");
    for (const [url, line, why] of refused) {
      const item = element("li");
      item.append(element("code", url), " ", element("bdi", why, "faint"));
      if (line) item.append(" ", linkTo(line, id));
      list.append(item);
    }
    return list;
  }

  function linkTo(line, id) {
    const button = element("button", `line ${line}`, "to-line");
    button.type = "button";
    button.addEventListener("click", () => document.getElementById(`${id}-${line}`)?.focus());
    return button;
  }

  function makeDisagreements(disagreements) {
    const says = (allowed) => (allowed ? "allowed" : "refused");
    const rows = disagreements.map(([url, parser, ours, theirs, line, known]) => [
      url,
      line ? `${says(ours)} (line ${line})` : says(ours),
      `${says(theirs)} by ${parser}`,
      known || "\u2013",
    ]);
    return makeTable(["URL", "verdict", "second opinion", "class"], rows);
  }

  function makeTable(names, rows) {
    const made = element("table", undefined, "small");
    const head = made.createTHead().insertRow();
    for (const name of names) {
      const title = element("th", name);
      title.scope = "col";
      head.append(title);
    }
    const inside = made.createTBody();
    for (const row of rows) inside.insertRow().append(...row.map((text) => element("td", text)));
    return made;
  }

  function makeFile(lines, id) {
    const list = element("ol", undefined, "file");
    list.setAttribute("role", "list");
    list.setAttribute("aria-label", "Lines of the robots.txt");
    // It scrolls, so it has to be reached by keys.
    list.tabIndex = 0;
    lines.forEach((line, index) => list.append(makeLine(line, index + 1, id)));
    return list;
  }

  function makeLine(line, position, id) {
    const [text, findings, allowed, refused] = typeof line === "string" ? [line, [], 0, 0] : line;
    const item = element("li");
    item.id = `${id}-${position}`;
    item.tabIndex = -1;
    item.append(element("span", position, "line"), element("code", text));
    if (allowed || refused) {
      item.className = "decided";
      const counts = [];
      if (allowed) counts.push(`allowed ${counted(allowed)}`);
      if (refused) counts.push(`refused ${counted(refused)}`);
      item.append(element("span", counts.join(", "), "count"));
    }
    for (const [severity, sentence] of findings) {
      const finding = element("p", undefined, severity);
      finding.append(element("strong", severity), `: ${sentence}`);
      item.append(finding);
    }
    return item;
  }

  // -- what people do

  heads.forEach((head, column) => {
    head.firstElementChild.addEventListener("click", () => sortBy(column));
  });
  more.firstElementChild.addEventListener("click", () => {
    const first = limit;
    limit += STEP;
    show();
    // The button may be gone: go on where the new rows begin.
    matching[first].row.querySelector(".open").focus();
  });
  const form = document.getElementById("controls");
  form.addEventListener("input", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  addEventListener("beforeprint", () => {
    for (const chart of document.querySelectorAll(".chart details")) chart.open = true;
  });
  nothing.lastElementChild.addEventListener("click", () => {
    setFilters("", "");
    filterName.focus();
  });
  for (const link of document.querySelectorAll("a[data-access]")) {
    link.addEventListener("click", () => setFilters(link.dataset.access, link.dataset.column));
  }
  // Also where the address does not change.
  for (const link of document.querySelectorAll("a[href^='#origin-']")) {
    link.addEventListener("click", () => setTimeout(follow));
  }
  sortBy(Math.max(0, columns.indexOf("refused")));
  follow();
})();
