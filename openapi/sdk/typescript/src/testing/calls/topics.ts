/** Operations of topics, their routes, and back-tests. */

import type { Fields } from '../definitions.js';
import { backTest } from '../topics/back-tests.js';
import { type Operations, bodyOf, once, putOptions } from './operations.js';

export const TOPIC_CALLS: Operations = [
  [
    'POST topics/*/messages',
    (service, request, name = '') => {
      const topic = service.topic(name);
      return once(service, request, () => {
        const messages = topic.publish(bodyOf(request).messages as Fields[]);
        return { status: 200, body: { messages, failed: messages.filter((result) => 'error' in result).length } };
      });
    },
  ],
  ['GET topics/*/stats', (service, _, name = '') => service.topic(name).stats()],
  ['GET topics/*/messages/*', (service, _, name = '', id = '') => service.topic(name).message(id).shown()],
  ['GET topics/*/messages/*/routes', (service, _, name = '', id = '') => service.topic(name).messageRoutes(id)],
  ['POST topics/*/backtests', (service, request, name = '') => backTest(service.topic(name), bodyOf(request))],
  [
    'POST topics/*/backtests/jobs',
    (service, request, name = '') => ({ status: 202, body: service.backTests.start(service.topic(name), bodyOf(request)) }),
  ],
  ['GET topics/*/backtests/jobs/*', (service, _, name = '', id = '') => service.backTests.ofTopic(name, id)],
  ['GET topics/*/routes', (service, { query }, name = '') => service.topic(name).routes.page(query.get('prefix') ?? '')],
  [
    'PUT topics/*/routes/*',
    (service, request, name = '', route = '') => {
      const options = putOptions(request);
      const [status, body] = service.topics.putRoute(name, route, bodyOf(request), options);
      return { status, body };
    },
  ],
  ['GET topics/*/routes/*', (service, _, name = '', route = '') => service.topic(name).routes.get(route).shown()],
  [
    'PATCH topics/*/routes/*',
    (service, request, name = '', route = '') => service.topic(name).routes.patch(route, bodyOf(request)),
  ],
  [
    'DELETE topics/*/routes/*',
    (service, _, name = '', route = '') => {
      service.topic(name).routes.delete(route);
      return undefined;
    },
  ],
  ['PUT topics/*/routes/*/pause', (service, _, name = '', route = '') => service.topic(name).routes.pause(route, true)],
  ['DELETE topics/*/routes/*/pause', (service, _, name = '', route = '') => service.topic(name).routes.pause(route, false)],
  ['GET topics/*/routes/*/stats', (service, _, name = '', route = '') => service.topic(name).routes.get(route).stats()],
];
