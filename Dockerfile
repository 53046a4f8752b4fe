# Pumice's one image: extender, controllers, webhooks, and the command line.
#
#     docker build --tag pumice:0.1.0 .
#
# What it is made of is in .dockerignore.
ARG PYTHON=3.11

FROM python:${PYTHON}-slim AS build
WORKDIR /source
# Each file is checked against its hash; what only tests need stays behind in this stage.
COPY requirements.lock .
RUN pip download --no-cache-dir --no-deps --require-hashes --only-binary=:all: \
        --requirement requirements.lock --dest /wheels
COPY . .
RUN python -m venv --without-pip /opt/pumice \
    && pip --python /opt/pumice install --no-cache-dir --no-index --find-links /wheels '.[cli]'

FROM python:${PYTHON}-slim
COPY --from=build /opt/pumice /opt/pumice
# The user below is in no passwd and needs a home all the same: a library looks for it. Logs go out
# as they come; numpy need not be ready to use every core of a node.
ENV HOME=/ \
    PATH=/opt/pumice/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    OPENBLAS_NUM_THREADS=1
USER 65532:65532
# The services are started as `python -m extender`, `controllers` or `webhooks`.
CMD ["pumice", "--help"]
