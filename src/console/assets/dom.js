// Elements without markup: texts go in as text nodes only, so that no product can bring markup of its own.

const SVG = 'http://www.w3.org/2000/svg';

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (name === 'class') element.setAttribute('class', value);
    else if (name === 'value') element.value = value;
    else if (name === 'checked') element.checked = value;
    else if (name === 'dataset') Object.assign(element.dataset, value);
    else element.setAttribute(name, value === true ? '' : value);
  }
  append(element, children);
  return element;
}

function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

/** An element with attributes, listeners (`onclick`) and children. */
export function h(name, attributes, ...children) {
  return fill(document.createElement(name), attributes, children);
}

/** The same for SVG. */
export function svg(name, attributes, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

/** Puts children in the place of what an element holds. */
export function show(element, ...children) {
  element.replaceChildren();
  append(element, children);
  return element;
}

/** What a link or a button stands for. */
const meaning = (control) => control.getAttribute('href') ?? control.value;

/**
 * Puts a part in the place of an older state of it where they differ, so that what somebody reads, marks or is about to press
 * stays as it is. Returns the one that stands.
 */
export function renew(old, next) {
  if (old.isEqualNode(next)) return old;
  const focused = old.contains(document.activeElement) ? document.activeElement : undefined;
  old.replaceWith(next);
  if (focused) [...next.querySelectorAll('a, button')].find((one) => meaning(one) === meaning(focused))?.focus({ preventScroll: true });
  return next;
}

let live;

/** Tells people what happened, in words that screen readers speak. */
export function announce(text) {
  live ??= document.body.appendChild(h('div', { class: 'unseen', role: 'status', 'aria-live': 'polite' }));
  live.textContent = text;
}

let toasts;

const SHOWN_MS = 6000;
const MOST_TOASTS = 4;

/** A note at the edge of the page; one that `stays`, as `bad` ones do, stays until closed. */
export function toast(text, { bad = false, stays = bad, action } = {}) {
  toasts ??= document.body.appendChild(h('div', { class: 'toasts', role: 'region', 'aria-label': 'Messages' }));
  const close = () => note.remove();
  const note = h('div', { class: bad ? 'toast bad' : 'toast', role: bad ? 'alert' : 'status' },
    h('span', {}, text),
    action && h('button', { type: 'button', onclick: () => { close(); action.run(); } }, action.label),
    h('button', { type: 'button', class: 'quiet', 'aria-label': 'Close', onclick: close }, '×'));
  toasts.append(note);
  while (toasts.children.length > MOST_TOASTS) toasts.firstElementChild.remove();
  if (!stays) setTimeout(close, SHOWN_MS);
  return note;
}

/** A dialog that resolves with what `body` passes to its callback, or with undefined when it is left. */
export function dialog(title, body) {
  return new Promise((resolve) => {
    let answer;
    const finish = (value) => { answer = value; box.close(); };
    const heading = h('h2', { id: 'dialog-title' }, title);
    const box = h('dialog', { 'aria-labelledby': 'dialog-title' }, heading);
    append(box, [body(finish)]);
    box.addEventListener('close', () => { box.remove(); resolve(answer); });
    document.body.append(box);
    box.showModal();
    (box.querySelector('[autofocus]') ?? box.querySelector('input, select, textarea, button'))?.focus();
  });
}

/** Leaves every open dialog unanswered. */
export function closeDialogs() {
  for (const box of document.querySelectorAll('dialog[open]')) box.close();
}
