// A firmware image that fails where it starts, as a bad build does.
export default (agent) => {
  throw new Error(`the sensor of ${agent.name} does not answer`);
};
