/** Operations of consumer groups: fetch, commit, bookmarks. */

import { type Operations, bodyOf, polled } from './operations.js';

export const GROUP_CALLS: Operations = [
  ['GET groups/*', (service, _, name = '') => service.group(name).details()],
  ['GET groups/*/records', (service, request, name = '') => polled(request, service.group(name).fetch(request.query))],
  ['POST groups/*/commit', (service, request, name = '') => service.group(name).commit(bodyOf(request))],
  [
    'DELETE groups/*/members/*',
    (service, { query }, name = '', member = '') => {
      service.group(name).leave(member, query.get('generation'));
      return undefined;
    },
  ],
  ['GET groups/*/lag', (service, _, name = '') => service.group(name).lag()],
  ['POST groups/*/reset', (service, request, name = '') => service.group(name).reset(bodyOf(request))],
  ['GET groups/*/bookmarks', (service, _, name = '') => ({ items: service.group(name).bookmarks() })],
  [
    'PUT groups/*/bookmarks/*',
    (service, request, name = '', bookmark = '') => service.group(name).putBookmark(bookmark, bodyOf(request)),
  ],
  [
    'DELETE groups/*/bookmarks/*',
    (service, _, name = '', bookmark = '') => {
      service.group(name).deleteBookmark(bookmark);
      return undefined;
    },
  ],
];
