# class: files
# tries: remove a folder of the image that is not empty, which the kernel refuses last
# stopped-by: root.readonly landlock.fs identity.unprivileged

# rmdir(2) checks mount, Landlock and permission first, and only then that the folder is empty.
text=$(LC_ALL=C rmdir /usr/bin 2>&1)
case "$text" in
    *"not empty"*) echo "REACHED /usr/bin, which stays as it is not empty"; exit 0 ;;
esac
echo "STOPPED $text"
exit 1
