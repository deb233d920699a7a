// What @hey-api/openapi-ts is told. `make sdk` runs it.
export default {
  input: '../../openapi.json',
  output: { path: 'src/generated' },
  plugins: ['@hey-api/typescript', '@hey-api/sdk', { name: '@hey-api/client-fetch', throwOnError: true }],
};
