// Upload of a file with products, and its report.

import { call, get } from './api.js';
import { h, show, toast } from './dom.js';
import { plain } from './text.js';
import { number, t } from './words.js';

const LOOK_MS = 700;
const FAULTS_SHOWN = 200;
const RUNNING = ['RUNNING', 'PENDING', 'QUEUED'];

/** Whether the service takes files: an address that is not there answers 404. */
const takesFiles = () => get('/imports').then(() => true, (error) => error.status !== 404);

export async function upload(main) {
  if (!await takesFiles()) {
    show(main, h('h1', {}, t('upload')), h('div', { class: 'card' }, h('p', {}, t('noImports')), h('pre', { class: 'json' }, 'vat-classification import --account … products.csv')));
    return;
  }
  const file = h('input', { id: 'file', type: 'file', required: true, accept: '.csv,.tsv,.txt,.xlsx,.xml' });
  const dry = h('input', { type: 'checkbox', name: 'dry' });
  const report = h('div', { 'aria-live': 'polite' });
  const progress = h('progress', { hidden: true, 'aria-label': t('upload') });

  function tell(state) {
    const figures = Object.entries(state).filter(([, value]) => typeof value === 'number');
    const faults = state.faults ?? state.errors ?? [];
    const place = (one) => [one.line, one.column ?? one.field, one.productId, one.message].filter((part) => part !== undefined && part !== null).join(' · ');
    show(report, h('section', { class: 'card' }, h('h2', {}, `${t('report')}: ${state.state ?? ''}`), h('dl', { class: 'pairs' }, figures.map(([name, value]) => [h('dt', {}, name), h('dd', {}, number(value))])),
      faults.length > 0 && h('ol', { class: 'faults' }, faults.slice(0, FAULTS_SHOWN).map((one) => h('li', {}, plain(place(one)))))));
  }

  async function submit(event) {
    event.preventDefault();
    const chosen = file.files[0];
    if (!chosen) return;
    progress.hidden = false;
    try {
      let state = await call('POST', '/imports', { parameters: dry.checked ? { dryRun: true } : {}, body: chosen, type: chosen.type || 'application/octet-stream' });
      const id = state.importId ?? state.id;
      while (id && RUNNING.includes(state.state)) {
        tell(state);
        await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
        state = await get(`/imports/${encodeURIComponent(id)}`);
      }
      tell(state);
    } catch (error) { toast(error.message, { bad: true }); }
    progress.hidden = true;
  }

  show(main, h('h1', {}, t('upload')), h('form', { class: 'card upload', onsubmit: submit }, h('label', { for: 'file' }, t('file'), file), h('p', { class: 'hint' }, t('uploadHint')),
    h('label', { class: 'box' }, dry, t('dryRun')), h('button', { type: 'submit', class: 'primary' }, t('start_upload')), progress), report);
}
