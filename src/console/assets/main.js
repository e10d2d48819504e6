// The frame of the console: sign-in, navigation by the address behind `#`, language and appearance.

import { ended, onSignedOut, signIn, signOut, whoAmI } from './api.js';
import { settled, unstored } from './assignments.js';
import { announce, closeDialogs, dialog, h, show, toast } from './dom.js';
import { account } from './account.js';
import { choose, current, t } from './words.js';
import { product } from './product.js';
import { queue } from './queue.js';
import { search } from './search.js';
import { start } from './start.js';
import { table } from './table.js';
import { upload } from './upload.js';

const PAGES = { start, queue, table, search, upload, account, product, missing };
const NAVIGATION = ['start', 'queue', 'table', 'search', 'upload', 'account'];
const TAXONOMIES = ['TARIC', 'TARES', 'UKGT'];
const root = document.getElementById('console');

let leave = () => {};

/** What an address shows that no page has. */
function missing(main) {
  show(main, h('div', { class: 'empty card' }, h('h1', {}, t('missing')), h('a', { class: 'button', href: '#/start' }, t('start'))));
}

/** Where the address points: page, what follows it, and its parameters. */
function place() {
  const [path, text] = location.hash.slice(1).split('?');
  const parameters = new URLSearchParams(text);
  try {
    const [page = 'start', ...rest] = path.split('/').filter(Boolean).map(decodeURIComponent);
    return { page: Object.hasOwn(PAGES, page) ? page : 'missing', rest, parameters };
  } catch {
    // A % that encodes nothing.
    return { page: 'missing', rest: [], parameters };
  }
}

/** The taxonomy in use: of the address, else the one chosen last. */
function taxonomyOf(parameters) {
  const asked = parameters.get('taxonomy') ?? localStorage.getItem('taxonomy');
  return TAXONOMIES.includes(asked) ? asked : 'TARIC';
}

const darkness = matchMedia('(prefers-color-scheme: dark)');
const themeChosen = () => localStorage.getItem('theme') ?? 'auto';

/** Shows the appearance chosen, or that of the system. */
function appear() {
  const theme = themeChosen();
  const ofSystem = darkness.matches ? 'dark' : 'light';
  document.documentElement.dataset.theme = theme === 'auto' ? ofSystem : theme;
}

function chooser(label, id, values, chosen, onchange) {
  const options = values.map(([value, text]) => h('option', { value, selected: value === chosen }, text));
  return h('label', { class: 'chooser', for: id }, h('span', { class: 'unseen' }, label), h('select', { id, onchange: (event) => onchange(event.target.value) }, options));
}

function languageChooser() {
  return chooser(t('language'), 'language', [['en', 'English'], ['de', 'Deutsch']], current(), (value) => { choose(value); render(); });
}

function themeChooser() {
  const take = (theme) => { localStorage.setItem('theme', theme); appear(); };
  return chooser(t('theme'), 'theme', ['auto', 'light', 'dark'].map((one) => [one, t(one)]), themeChosen(), take);
}

function signInPage() {
  rendering += 1;
  leave();
  leave = () => {};
  closeDialogs();
  document.title = t('title');
  document.documentElement.lang = current();
  const field = h('input', { id: 'token', type: 'password', autocomplete: 'off', required: true, spellcheck: 'false', 'aria-describedby': 'token-hint' });
  const fault = h('p', { class: 'fault', role: 'alert' });
  const submit = async (event) => {
    event.preventDefault();
    show(fault);
    try {
      await signIn(field.value.trim());
      field.value = '';
      // The page begins anew: nothing of whoever was here before is left in it.
      location.reload();
    } catch (error) {
      show(fault, error.message);
      field.focus();
    }
  };
  show(root, h('main', { class: 'sign-in', id: 'main' },
    h('h1', { class: 'brand' }, t('title')),
    h('form', { class: 'card', onsubmit: submit },
      h('label', { for: 'token' }, t('token')), field,
      h('p', { id: 'token-hint', class: 'hint' }, t('tokenHint')), fault,
      h('button', { type: 'submit', class: 'primary' }, t('signIn'))),
    h('p', { class: 'foot' }, languageChooser(), themeChooser(), h('a', { href: '/docs' }, '/docs'))));
  field.focus();
}

/** Ends the session once all that was decided in it is stored. Nothing of it is left in the page for whoever comes next. */
async function out() {
  if (unstored()) {
    const all = await dialog(t('signOut'), (finish) => {
      settled().then(finish);
      return h('div', {}, h('p', { role: 'status' }, t('storesFirst')), h('div', { class: 'row' }, h('button', { type: 'button', onclick: () => finish() }, t('cancel'))));
    });
    if (all === false) toast(t('notAllStored'), { bad: true });
    if (!all) return;
  }
  try {
    await signOut();
    location.reload();
  } catch (error) { toast(`${t('stillSignedIn')}: ${error.message}`, { bad: true }); }
}

function frame(here, taxonomy) {
  const link = (page) => h('a', { href: `#/${page}`, 'aria-current': page === here.page ? 'page' : undefined }, t(page));
  const change = (value) => {
    localStorage.setItem('taxonomy', value);
    here.parameters.delete('taxonomy');
    here.parameters.delete('cursor');
    const rest = here.parameters.toString();
    const next = `#/${[here.page === 'product' ? 'queue' : here.page].join('/')}${rest ? `?${rest}` : ''}`;
    if (location.hash === next) render();
    else location.hash = next;
  };
  return [
    h('a', { class: 'skip', href: '#main', onclick: (event) => { event.preventDefault(); document.getElementById('main').focus(); } }, t('skip')),
    h('header', {},
      h('a', { class: 'brand', href: '#/start' }, t('title')),
      h('nav', { 'aria-label': t('title') }, NAVIGATION.map(link)),
      h('div', { class: 'settings' },
        chooser(t('taxonomy'), 'taxonomy', TAXONOMIES.map((one) => [one, one]), taxonomy, change),
        languageChooser(), themeChooser(),
        h('button', { type: 'button', class: 'quiet', onclick: out }, t('signOut')))),
    h('main', { id: 'main', tabindex: '-1' }),
  ];
}

let rendering = 0;

async function render() {
  const turn = ++rendering;
  leave();
  leave = () => {};
  closeDialogs();
  const here = place();
  let session;
  try {
    session = await whoAmI();
  } catch (error) {
    if (error.status === 401 || error.status === 403) return signInPage();
    return show(root, h('main', { class: 'empty', role: 'alert' }, h('h1', {}, t('awayNow')), h('p', {}, error.message), h('button', { type: 'button', onclick: render }, t('again'))));
  }
  if (turn !== rendering) return undefined;
  // Somebody has signed in elsewhere, perhaps somebody else.
  if (ended()) return location.reload();
  document.documentElement.lang = current();
  const taxonomy = taxonomyOf(here.parameters);
  show(root, frame(here, taxonomy));
  document.title = `${t(here.page)} · ${t('title')}`;
  const main = document.getElementById('main');
  try {
    const done = await PAGES[here.page](main, { taxonomy, session, rest: here.rest, parameters: here.parameters, go: (hash) => { location.hash = hash; } });
    if (turn !== rendering) done?.();
    else leave = done ?? (() => {});
  } catch (error) {
    if (turn === rendering && error.status !== 401) show(main, h('p', { class: 'fault', role: 'alert' }, error.message), h('button', { type: 'button', onclick: render }, t('again')));
  }
  announce(t(here.page));
  return undefined;
}

appear();
darkness.addEventListener('change', appear);
onSignedOut(signInPage);
addEventListener('hashchange', render);
addEventListener('beforeunload', (event) => { if (unstored() && !ended()) event.preventDefault(); });
// A key that is held presses a button once: what stands behind the first press nobody has seen.
addEventListener('keydown', (event) => { if (event.repeat && event.key === 'Enter' && event.target.tagName === 'BUTTON') event.preventDefault(); });
render();
