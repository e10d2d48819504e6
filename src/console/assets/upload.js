// Upload of a file with products, how far it is, and its report.

import { lines } from './api.js';
import { announce, h, show, toast } from './dom.js';
import { plain } from './text.js';
import { number, t } from './words.js';

const FIGURES = ['created', 'updated', 'unchanged', 'refused'];
const LANGUAGES = ['de', 'en', 'fr', 'it', 'es', 'nl', 'pl'];

/** Why a file was not read to its end. */
const stopped = (message) => h('p', { class: 'fault', role: 'alert' }, `${t('importStopped')}: `, plain(message));

/** The card around what is told of a file. */
const card = (...content) => h('section', { class: 'card', id: 'report' }, h('h2', {}, t('report')), ...content);

/** What became of the lines: figures, what was left, and what is wrong with each line that was refused. */
function reportOf(answer) {
  const said = answer.dryRun ? t('importChecked') : t('importDone');
  const fault = (one) => h('tr', {}, h('th', { scope: 'row', class: 'figure' }, number(one.line)), h('td', {}, plain(one.productId)), h('td', {}, plain(one.column)), h('td', {}, plain(one.message)));
  return card(answer.state === 'STOPPED' ? stopped(answer.error?.message) : h('p', {}, said),
    h('dl', { class: 'pairs' }, FIGURES.map((name) => [h('dt', {}, t(`import ${name}`)), h('dd', { id: `import-${name}` }, number(answer[name]))])),
    answer.leftColumns.length > 0 && h('p', {}, `${t('leftColumns')}: `, answer.leftColumns.map((name, at) => [at > 0 && ', ', plain(name)])),
    answer.faults.length > 0 && h('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': t('importFaults') }, h('table', { id: 'faults' },
      h('thead', {}, h('tr', {}, ['line', 'productId', 'column', 'fault'].map((name) => h('th', { scope: 'col' }, t(name))))), h('tbody', {}, answer.faults.map(fault)))),
    !answer.dryRun && answer.created + answer.updated > 0 && h('p', {}, h('a', { class: 'button', href: '#/queue' }, t('queue'))));
}

export async function upload(main) {
  const file = h('input', { id: 'file', type: 'file', required: true, accept: '.csv,.tsv,.txt,.xlsx,.xml' });
  const dry = h('input', { type: 'checkbox', name: 'dry' });
  const language = h('select', { id: 'file-language' }, LANGUAGES.map((one) => h('option', { value: one }, one)));
  const columns = h('textarea', { id: 'columns', rows: 3, spellcheck: 'false', placeholder: 'Artikelnummer=productId' });
  const send = h('button', { type: 'submit', class: 'primary' }, t('start_upload'));
  const stop = h('button', { type: 'button', hidden: true, onclick: () => stopping?.abort() }, t('cancel'));
  const progress = h('progress', { hidden: true, 'aria-label': t('upload') });
  const place = h('p', { class: 'hint', 'aria-live': 'polite' });
  const report = h('div', { 'aria-live': 'polite' });
  let stopping;

  const busy = (is) => {
    progress.hidden = !is;
    stop.hidden = !is;
    send.disabled = is;
    if (!is) { show(place); progress.removeAttribute('value'); }
  };

  function onLine(line) {
    if (line.state) { show(report, reportOf(line)); announce(`${t('report')}: ${FIGURES.map((name) => `${t(`import ${name}`)} ${number(line[name])}`).join(', ')}`); return; }
    progress.max = Math.max(1, line.size);
    progress.value = line.bytes;
    show(place, `${number(line.rows)} ${t('rowsDone')}`);
  }

  async function submit(event) {
    event.preventDefault();
    const chosen = file.files[0];
    if (!chosen || send.disabled) return;
    stopping = new AbortController();
    show(report);
    busy(true);
    const map = columns.value.split('\n').map((one) => one.trim()).filter(Boolean);
    try {
      await lines('/imports', { parameters: { dryRun: dry.checked || undefined, language: language.value, map }, body: chosen, signal: stopping.signal, onLine });
    } catch (error) {
      // A file that is refused before its answer begins is told of in the same place as one that stops later.
      if (stopping.signal.aborted) toast(t('importCancelled'));
      else show(report, card(stopped(error.message)));
    }
    busy(false);
  }

  show(main, h('h1', {}, t('upload')), h('form', { class: 'card upload', onsubmit: submit },
    h('label', { for: 'file' }, t('file'), file), h('p', { class: 'hint' }, t('uploadHint')),
    h('label', { for: 'file-language' }, t('fileLanguage'), language),
    h('details', {}, h('summary', {}, t('otherColumns')), h('label', { for: 'columns' }, t('columnsHint'), columns)),
    h('label', { class: 'box' }, dry, t('dryRun')), h('div', { class: 'row' }, send, stop), progress, place), report);
  return () => stopping?.abort();
}
