/** In-memory service for tests of programs that use the client. */

export { Defined, type Clock, type Fields } from './definitions.js';
export { MemoryGroup } from './groups.js';
export { StoredMessage, type StoredState } from './messages.js';
export { MemoryProblem } from './problems.js';
export { MemoryQueue } from './queues.js';
export { MemoryService } from './service.js';
export { PublishedMessage } from './topics/published.js';
export { MemoryStream, type StoredRecord } from './streams.js';
export { MemoryRoute } from './topics/route.js';
export { RoutedLog } from './topics/routed-log.js';
export { MemoryTopic } from './topics/topic.js';
